// SPDX-License-Identifier: BSD-3-Clause
//
// Checks that two ranks are in the same collective, and ends an operation with an error if not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "transports/transport.h"

namespace sluice {

// What each side of a channel has said its calls are. All messages of a call have the same
// Tag::what, so comparing calls finds ranks that disagree even if none of their messages match.
// Keeps each side's 8 latest calls, one for each residue of the call number.
class Agreement {
 public:
  // Notes what this side (or the peer) says the call is. Returns what the other side said, if
  // different.
  std::optional<uint32_t> ours(const Tag& tag) { return note(ours_, theirs_, tag); }
  std::optional<uint32_t> theirs(const Tag& tag) { return note(theirs_, ours_, tag); }

 private:
  struct Said {
    uint32_t call = 0;
    uint32_t what = 0;
    bool said = false;
  };
  using Calls = std::array<Said, 8>;

  static std::optional<uint32_t> note(Calls& mine, const Calls& other, const Tag& tag) {
    const size_t place = tag.call % mine.size();
    mine[place] = {tag.call, tag.what, true};
    const Said& said = other[place];
    if (!said.said || said.call != tag.call || said.what == tag.what) return std::nullopt;
    return said.what;
  }

  Calls ours_, theirs_;
};

// Set Code::mismatch: the peer is in another collective, or the message has another length.
void end_with_other_what(Operation* operation, uint32_t theirs, const std::string& label);
void end_with_other_length(Operation* operation, size_t theirs, const std::string& label);

}  // namespace sluice
