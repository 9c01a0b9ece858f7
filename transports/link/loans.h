// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that the receiver gets from the sender's memory, with one copy (the rendezvous that UCX
// calls get_zcopy, and Open MPI's ob1 RGET):
//
//   sender     RGET: where the message lies, and the loan's word ->
//   receiver   once its receive is posted: reads the message into place, then the word
//              <- FIN: the sender may change its memory; or CTS: it can't be read, send it
//
// The sender may end a loan at any time, because its call has failed: it clears the word first. So
// a receiver that has read the word unchanged, after the message, has read the message as it was.
// Otherwise it has read anything, and answers CTS, which a sender that has ended the loan ignores.
// Nobody writes into another process's memory, so a receive can be withdrawn at any time: only this
// side's own network card may have to be stopped.
//
// A receive is complete when FIN has left: no other operation would move it.
//
// The payload of RGET: the carrier, and the word's address, key and value, then each region's
// address, bytes and key, 8 bytes each, little-endian.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transports/peer_memory.h"
#include "transports/transport.h"

namespace sluice {

// The payload of an RGET frame.
std::vector<std::byte> encode(const LentMessage& lent);
// No value if it is none of a message of so many bytes.
std::optional<LentMessage> decode_lent(const std::string& payload, size_t bytes);

// Of sends that were lent, those that the peer could not get. After a few in a row, no more of the
// call are lent.
class Refusals {
 public:
  bool allow(uint32_t call) {
    if (std::exchange(call_, call) != call) in_a_row_ = 0;
    return in_a_row_ < most;
  }
  void note_refused() { ++in_a_row_; }
  void note_got() { in_a_row_ = 0; }

 private:
  static constexpr unsigned most = 4;

  unsigned in_a_row_ = 0;
  uint32_t call_ = 0;
};

// The words of an endpoint's loans. They stay where they are as long as the endpoint lives. Values
// are never used again, and begin at random.
class Loans {
 public:
  static constexpr size_t most = 1024;

  // Begins a loan: its word. nullptr: there is none. Throws nothing.
  LoanWord* begin();
  void end(LoanWord* word);
  // Where they lie.
  Bytes memory() const {
    return {reinterpret_cast<std::byte*>(words_.get()), most * sizeof(LoanWord)};
  }

 private:
  bool make();

  std::unique_ptr<LoanWord[]> words_;
  std::vector<LoanWord*> free_;
  uint64_t latest_ = 0;
};

}  // namespace sluice
