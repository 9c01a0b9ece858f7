// SPDX-License-Identifier: BSD-3-Clause
//
// Teams whose communicators have been freed, kept for those that will be made of the same processes
// in the same order: with their channels, leases and plans. Programs make and free communicators by
// the thousand, and mostly the same ones.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/status.h"
#include "transports/transport.h"

namespace sluice {

class NewTeam;

class Shelf {
 public:
  static constexpr size_t most = 16;  // the oldest has to go

  Shelf();
  ~Shelf();

  // Any thread may do these. A mark is equal for communicators that probably have the same
  // processes in the same order (Bootstrap::mark).
  void put(uint64_t mark, std::unique_ptr<NewTeam> team);
  // The one with the lowest number, for it is likely to be what the other ranks take, with so many
  // ranks and this one; nullptr if there is none.
  std::unique_ptr<NewTeam> take(uint64_t mark, uint32_t rank, uint32_t size);
  // Ends those of that kind up to that number: not all ranks have kept them. From then on the ranks
  // have the same ones again.
  void drop(uint64_t mark, uint32_t rank, uint32_t size, const TeamId& last);
  void clear();

 private:
  struct Kept;
  std::mutex mutex_;
  std::vector<Kept> kept_;  // oldest first
};

}  // namespace sluice
