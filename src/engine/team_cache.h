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

// Teams of freed communicators.
class TeamCache {
 public:
  static constexpr size_t most = 16;  // then the oldest is evicted

  TeamCache();
  ~TeamCache();

  // Any thread may call these. group_fingerprint: equal for communicators that probably have the
  // same processes in the same order (Bootstrap::group_fingerprint).
  void put(uint64_t group_fingerprint, std::unique_ptr<NewTeam> team);
  // Removes and returns a team of this group_fingerprint, rank and size; nullptr if there is none.
  // Of several, the one with the lowest id, because the other ranks are likely to take the same.
  std::unique_ptr<NewTeam> remove(uint64_t group_fingerprint, uint32_t rank, uint32_t size);
  // Ends the teams of this group_fingerprint, rank and size with ids up to `last`, because not all
  // ranks have cached them. After that the caches of all ranks agree again.
  void drop(uint64_t group_fingerprint, uint32_t rank, uint32_t size, const TeamId& last);
  void clear();

 private:
  struct Kept;
  std::mutex mutex_;
  std::vector<Kept> kept_;  // oldest first
};

// A team that was formed. Each of its ranks remembers it under the same id, with its own rank.
struct KnownGroup {
  TeamId id;
  uint32_t rank;
  std::vector<Peer> peers;
  std::vector<uint32_t> hosts;  // as in Shape
  bool uses_outcomes;           // of earlier jobs (NewTeam::use_outcomes)
  bool shares;  // its ranks share an arena; false: they are on several hosts, or may not share one
};

// What a process remembers of each team that it formed: the peers. A new communicator of the same
// processes in the same order then needs one exchange to set its team up, because they know each
// other's addresses and settings already.
class KnownGroups {
 public:
  static constexpr size_t most = 16;  // then the least recently used is dropped

  // Any thread may call these. group_fingerprint: as in TeamCache. `put` replaces an entry of the
  // same group_fingerprint, rank and size.
  void put(uint64_t group_fingerprint, std::shared_ptr<const KnownGroup> known);
  // nullptr if there is none.
  std::shared_ptr<const KnownGroup> find(uint64_t group_fingerprint, uint32_t rank, size_t size);

 private:
  struct Entry {
    uint64_t group_fingerprint;
    std::shared_ptr<const KnownGroup> known;
    bool is(uint64_t other, uint32_t rank, size_t size) const {
      return group_fingerprint == other && known->rank == rank && known->peers.size() == size;
    }
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;  // most recently used last
};

}  // namespace sluice
