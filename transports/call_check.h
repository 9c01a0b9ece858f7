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

// What each side of a channel has said its calls are. All messages of a call carry its
// Tag::signature and size, so comparing calls finds ranks that disagree even if none of their
// messages match. Keeps each side's 8 latest calls, one for each residue of the call number.
class CallCheck {
 public:
  // Notes what this side (or the peer) says the call is. Returns what the other side said, if
  // different.
  std::optional<Tag> ours(const Tag& tag) { return note(ours_, theirs_, tag); }
  std::optional<Tag> theirs(const Tag& tag) { return note(theirs_, ours_, tag); }

 private:
  struct Said {
    Tag tag;
    bool said = false;
  };
  using Calls = std::array<Said, 8>;

  static std::optional<Tag> note(Calls& mine, const Calls& other, const Tag& tag) {
    const size_t place = tag.call % mine.size();
    mine[place] = {tag, true};
    const Said& said = other[place];
    if (!said.said || said.tag.call != tag.call || is_same_call(said.tag, tag)) return std::nullopt;
    return said.tag;
  }

  static bool is_same_call(const Tag& a, const Tag& b) {
    return a.signature == b.signature && a.size_of_call() == b.size_of_call();
  }

  Calls ours_, theirs_;
};

// Whether a message that arrives, with so many bytes, is what the receive was posted for.
inline bool fits(const Operation& receive, const Tag& tag, size_t bytes) {
  return receive.bytes == bytes && receive.tag.size == tag.size;
}

// Set Code::mismatch: the peer is in another call, or the message has another length.
void end_with_other_call(Operation* operation, const Tag& theirs, const std::string& label);
void end_with_other_length(Operation* operation, const Tag& theirs, size_t bytes,
                           const std::string& label);

}  // namespace sluice
