// SPDX-License-Identifier: BSD-3-Clause
//
// Whether two ranks mean the same thing, and how an operation ends when they do not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "transports/transport.h"

namespace sluice {

// What each side of a channel said its calls are. All messages of a call carry the same Tag::what,
// so one look at the call finds ranks that disagree even where no two of their messages match.
// Remembers the latest calls of each side, one for every residue: as many calls at once.
class Agreement {
 public:
  // Notes what this side, or the peer, says the call is. What the other side said, if it differs.
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

// The operation's end when the peer is in something else, or its message has another length.
void end_with_other_what(Operation* operation, uint32_t theirs, const std::string& label);
void end_with_other_length(Operation* operation, size_t theirs, const std::string& label);

}  // namespace sluice
