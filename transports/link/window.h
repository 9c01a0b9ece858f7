// SPDX-License-Identifier: BSD-3-Clause
//
// A team's windows on a link, one in each direction: how many bytes the sender may send before the
// receiver has posted their receives. A message takes its payload and its header, because empty
// ones would be unlimited otherwise. One without room waits: the sender announces it (RTS), and it
// goes when the receiver has posted its receive (CTS), or when there is room after all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "transports/link/frame.h"
#include "transports/transport.h"

namespace sluice {

// Operations in order of posting.
class OperationList {
 public:
  Operation* front() const { return first_; }
  void push_back(Operation* operation);
  // Remove the first, the one with that tag (nullptr if none), or all (of a call), and return them.
  Operation* pop_front() { return unlink(&first_); }
  Operation* remove(const Tag& tag);
  Operation* remove_all(std::optional<uint32_t> call);

 private:
  Operation* unlink(Operation** place);

  Operation* first_ = nullptr;
  Operation** end_ = &first_;
};

// The sender's side.
class SendWindow {
 public:
  explicit SendWindow(size_t bytes) : bytes_(bytes) {}

  // False if there is no room: the send waits now.
  bool admit(Operation* send) {
    if (take_room(*send)) return true;
    waiting_.push_back(send);
    return false;
  }
  // The receiver has freed so many bytes.
  void credit(size_t bytes) { used_ -= std::min(used_, bytes); }
  // The first waiting send, if there is room for it now; else nullptr.
  Operation* admit_next() {
    Operation* const first = waiting_.front();
    return first != nullptr && take_room(*first) ? waiting_.pop_front() : nullptr;
  }
  // The send whose receive is posted, which goes without room; nullptr: it does not wait any more.
  Operation* release(const Tag& tag) { return waiting_.remove(tag); }
  // Removes those that wait, all or of one call, linked by `next`.
  Operation* withdraw(std::optional<uint32_t> call) { return waiting_.remove_all(call); }

 private:
  bool take_room(const Operation& send) {
    const size_t charge = Frame::bytes + send.bytes;
    if (used_ + charge > bytes_) return false;
    used_ += charge;
    return true;
  }

  const size_t bytes_;
  size_t used_ = 0;
  OperationList waiting_;
};

// The receiver's side.
class ReceiveWindow {
 public:
  explicit ReceiveWindow(size_t bytes) : bytes_(bytes) {}

  // For a message without a receive. False if the sender has exceeded the window.
  bool set_aside(size_t message) {
    if (set_aside_ + Frame::bytes + message > bytes_) return false;
    set_aside_ += Frame::bytes + message;
    return true;
  }
  // The message has its receive now.
  void take_back(size_t message) { set_aside_ -= Frame::bytes + message; }
  // A message has been received, and its room is free again. True if the sender should be told by a
  // frame, because half the window is owed; less goes with the next data frame.
  bool owe(size_t message) {
    owed_ += Frame::bytes + message;
    return owed_ >= bytes_ / 2;
  }
  // What is to be credited now.
  uint32_t take_credit() { return static_cast<uint32_t>(std::exchange(owed_, 0)); }
  // The frame that was to carry so much credit was given up.
  void return_credit(uint32_t bytes) { owed_ += bytes; }

 private:
  const size_t bytes_;
  size_t set_aside_ = 0;  // with unexpected messages
  size_t owed_ = 0;       // free again, not yet credited
};

}  // namespace sluice
