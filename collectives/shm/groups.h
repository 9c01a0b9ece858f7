// SPDX-License-Identifier: BSD-3-Clause
//
// The groups of a team: ranks that share a cache, or a NUMA node. Algorithms named `grouped` meet
// inside each group first, then the groups' leaders meet: few ranks poll each flag, and most cache
// lines stay on their side of the machine. They take more steps than those named `flat`. (Li,
// Hoefler and Snir, NUMA-aware shared-memory collective communication for MPI, HPDC 2013; Graham
// and Shipman, as in shm.h.) When ranks form groups: make_groups in src/engine/localities.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/algorithm.h"

namespace sluice {

// As one rank sees them.
class Groups {
 public:
  // of: the group of each rank, numbered in the order of their lowest ranks. Throws std::bad_alloc.
  Groups(std::span<const uint32_t> of, Rank rank)
      : of_(of.begin(), of.end()), members_(count_hosts(of)), own_(of[rank]) {
    for (Rank each = 0; each < of.size(); ++each) members_[of[each]].push_back(each);
  }

  uint32_t count() const { return static_cast<uint32_t>(members_.size()); }
  uint32_t own() const { return own_; }
  // In rising order.
  const std::vector<Rank>& members(uint32_t group) const { return members_[group]; }
  const std::vector<Rank>& here() const { return members_[own_]; }
  // The lowest rank, but where the root is it leads.
  Rank leader(uint32_t group, Rank root = 0) const {
    return of_[root] == group ? root : members_[group].front();
  }
  const std::vector<uint32_t>& of() const { return of_; }  // by rank

 private:
  std::vector<uint32_t> of_;
  std::vector<std::vector<Rank>> members_;
  uint32_t own_;
};

}  // namespace sluice
