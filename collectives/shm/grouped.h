// SPDX-License-Identifier: BSD-3-Clause
//
// What the algorithms in groups share: which rank waits for which in a round.
#pragma once

#include "collectives/shm/cuts.h"
#include "collectives/shm/groups.h"

namespace sluice {

// This rank's part in a call's groups: it leads its group, or follows the leader.
class Grouped {
 public:
  Grouped(Rounds& rounds, const ShmCall& call, Rank root)
      : rounds_(rounds), groups_(*call.groups), root_(root) {}

  const Groups& groups() const { return groups_; }
  Rank leader() const { return groups_.leader(groups_.own(), root_); }
  Rank leader(uint32_t group) const { return groups_.leader(group, root_); }
  bool leads() const { return rounds_.rank() == leader(); }
  bool has_followers() const { return groups_.here().size() > 1; }

  // The leader's: until its followers' data of round k is there, `bytes` of each.
  bool await_followers(uint64_t k, size_t bytes) const {
    for (const Rank rank : groups_.here()) {
      if (rank != rounds_.rank() && !rounds_.await(rank, k, bytes)) return false;
    }
    return true;
  }
  // Until the other groups' leaders' is.
  bool await_leaders(uint64_t k, size_t bytes) const {
    for (uint32_t group = 0; group < groups_.count(); ++group) {
      if (group != groups_.own() && !rounds_.await(leader(group), k, bytes)) return false;
    }
    return true;
  }
  // A follower's: until its leader's data of round `last` is there. What the leader has in round
  // `first` comes earlier, and shows whether it is in the same call.
  bool await_leader(uint64_t first, size_t first_bytes, uint64_t last, size_t last_bytes) const {
    return rounds_.await(leader(), first, first_bytes) && rounds_.await(leader(), last, last_bytes);
  }

 private:
  Rounds& rounds_;
  const Groups& groups_;
  const Rank root_;
};

}  // namespace sluice
