// SPDX-License-Identifier: BSD-3-Clause
//
// The team cache: teams of freed communicators, with their channels, leases and plans. A cached
// team can serve a new communicator of the same processes in the same order. Programs make and free
// communicators by the thousand, mostly of the same processes.
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
  static constexpr size_t most = 16;  // then the oldest is evicted

  Shelf();
  ~Shelf();

  // Any thread may call these. mark: the group fingerprint, equal for communicators that probably
  // have the same processes in the same order (Bootstrap::mark).
  void put(uint64_t mark, std::unique_ptr<NewTeam> team);
  // Removes and returns a team of this mark, rank and size; nullptr if there is none. Of several,
  // the one with the lowest id, because the other ranks are likely to take the same.
  std::unique_ptr<NewTeam> take(uint64_t mark, uint32_t rank, uint32_t size);
  // Ends the teams of this mark, rank and size with ids up to `last`, because not all ranks have
  // cached them. After that the caches of all ranks agree again.
  void drop(uint64_t mark, uint32_t rank, uint32_t size, const TeamId& last);
  void clear();

 private:
  struct Kept;
  std::mutex mutex_;
  std::vector<Kept> kept_;  // oldest first
};

}  // namespace sluice
