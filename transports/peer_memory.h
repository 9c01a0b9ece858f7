// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of a link's peer, which this side reads where it lies: one copy in place of two through a
// conduit. A peer lends its memory for as long as a loan lasts (transports/link/loans.h).
//
// What carries the bytes either has them at once (CMA, a system call), or reads them meanwhile
// (RDMA), and reports later.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transports/transport.h"

namespace sluice {

// A piece of a process's memory, as that process addresses it.
struct Region {
  uint64_t address = 0, bytes = 0;
  uint64_t key = 0;  // the carrier's
};

// A message that has more regions is sent, and a longer one.
inline constexpr size_t most_regions = 16, longest_lent = size_t{4} << 20;

struct LentMessage {
  uint64_t carrier = 0;   // whose keys these are; 0: CMA, which has none
  uint64_t word = 0;      // the address of the loan's word
  uint64_t word_key = 0;  // its key
  uint64_t value = 0;     // what it holds while the loan lasts
  std::vector<Region> regions;
};

// Whom a carrier tells that reading has ended.
class Getter {
 public:
  // Nothing is written to the receive's memory any more. is_right: it holds the message, which was
  // still lent.
  virtual void end_get(Operation* receive, bool is_right) = 0;

 protected:
  ~Getter() = default;
};

class PeerMemory {
 public:
  enum class Get : uint8_t {
    done,
    under_way,  // report() tells
    refused     // it can't be read; anything may have been written
  };

  virtual ~PeerMemory() = default;
  // Fills in how the peer reads this send's message, and the loan's word, which lies in `words`.
  // False: it can't, or to send it is quicker. May throw std::bad_alloc.
  virtual bool lend(const Operation& send, Bytes words, LentMessage* lent) = 0;
  // Reads the message into the memory of a receive of the same length, and then the word. May throw
  // std::bad_alloc.
  virtual Get get(const LentMessage& lent, Operation* receive, Getter* getter) = 0;
  // Tells getters what has ended since. True if anything has.
  virtual bool report() { return false; }
  // Nothing is written to this receive's memory any more, and its getter is told nothing. Waits for
  // the device if it must.
  virtual void stop(Operation* receive) { (void)receive; }
  // Nothing more is read of the peer's memory, and nothing is lent, by this part of the carrier or
  // by any. What is under way is stopped at once; report() then tells of it.
  virtual void end(uint32_t part) { (void)part; }
  virtual void end() {}
  // A part that can't be read by any more, in neither direction, which the peer has to be told.
  // Each once.
  virtual std::optional<uint32_t> next_broken() { return std::nullopt; }
  // The peer may still be reading what was lent of this send, whose loan has ended.
  virtual void keep(const Operation& send) { (void)send; }
};

// Memory that is read at once, by address alone.
class AddressedMemory : public PeerMemory {
 public:
  // Bytes of a message from which on this is quicker.
  virtual size_t least() const = 0;
  // Reads the region into `to`. False if not all of it can be read; some may have been. Does not
  // wait for the peer. System calls.
  virtual bool read(const Region& from, std::byte* to) = 0;

  bool lend(const Operation& send, Bytes words, LentMessage* lent) override;
  Get get(const LentMessage& lent, Operation* receive, Getter* getter) override;
};

// visit(from, to): for each stretch of these regions that lies in one piece, and is written there.
// Both have as many bytes. False as soon as visit returns false.
template <typename Visit>
bool visit_stretches(std::span<const Region> regions, std::span<const Bytes> pieces,
                     const Visit& visit) {
  auto piece = pieces.begin();
  size_t filled = 0;  // of this piece
  for (Region rest : regions) {
    while (rest.bytes > 0) {
      const size_t bytes = std::min<size_t>(rest.bytes, piece->size - filled);
      if (bytes > 0 &&
          !visit(Region{rest.address, bytes, rest.key}, Bytes{piece->data + filled, bytes})) {
        return false;
      }
      rest = {rest.address + bytes, rest.bytes - bytes, rest.key};
      filled += bytes;
      if (filled == piece->size) ++piece, filled = 0;
    }
  }
  return true;
}

}  // namespace sluice
