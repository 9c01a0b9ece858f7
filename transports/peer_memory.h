// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of a link's peer, which this side reads where it lies: one copy in place of two through a
// conduit. A peer lends its memory for as long as a loan lasts (transports/link/loans.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

// A piece of a process's memory, as that process addresses it.
struct Region {
  uint64_t address = 0, bytes = 0;
};

class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  // Reads the region into `to`. False if not all of it can be read; some may have been. Does not
  // wait for the peer. System calls.
  virtual bool read(const Region& from, std::byte* to) = 0;
};

}  // namespace sluice
