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
// Nobody writes into another process's memory, so a receive can be withdrawn at any time.
//
// A receive is complete when FIN has left: no other operation would move it.
//
// The payload of RGET: the word's address and its value, then each region's address and bytes, 8
// bytes each, little-endian.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transports/peer_memory.h"
#include "transports/transport.h"

namespace sluice {

// A message that has more pieces is sent, and a longer one, which a receiver would copy in one
// turn.
inline constexpr size_t most_regions = 16, longest_lent = size_t{4} << 20;

struct LentMessage {
  uint64_t word = 0;   // the address of the loan's word
  uint64_t value = 0;  // what it holds while the loan lasts
  std::vector<Region> regions;
};

// The payload of an RGET frame.
std::vector<std::byte> encode(const LentMessage& lent);
// No value if it is none of a message of so many bytes.
std::optional<LentMessage> decode_lent(const std::string& payload, size_t bytes);

// The words of an endpoint's loans. They stay where they are as long as the endpoint lives. Values
// are never used again, and begin at random.
class Loans {
 public:
  static constexpr size_t most = 1024;

  // Begins a loan: its word. nullptr: there is none. Throws nothing.
  LoanWord* begin();
  void end(LoanWord* word);

  // What is read before it is read before what is read after it.
  void fence() { set_and_fence(fence_, 0); }

 private:
  static void set_and_fence(LoanWord& word, uint64_t value);
  bool make();

  std::unique_ptr<LoanWord[]> words_;
  std::vector<LoanWord*> free_;
  uint64_t latest_ = 0;
  LoanWord fence_{};
};

}  // namespace sluice
