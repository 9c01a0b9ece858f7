// SPDX-License-Identifier: BSD-3-Clause
//
// The hosts that a team's ranks run on. What passes between two hosts shares their links; what
// stays on one does not, and is quick. So algorithms for several hosts work on two levels (Karonis,
// de Supinski, Foster, Gropp, Lusk and Bresnahan, Exploiting hierarchy in parallel computer
// networks to optimize collective operation performance, IPDPS 2000; Traeff, Improved MPI
// all-to-all communication on a Giganet SMP cluster, EuroPVM/MPI 2002): ranks of a host meet, and
// its leaders meet those of the others.
//
// One leader a host sends the fewest messages. Where bytes count, each of several leaders carries a
// share (Bayatpour, Chakraborty, Subramoni, Lu and Panda, Scalable reduction collectives with data
// partitioning-based multi-leader design, SC 2017): all processors work, and a host's link carries
// no byte twice. The leader of a share talks to its like on the other hosts. Where hosts have
// different numbers of ranks, those of the smallest carry several shares each: no rank of any host
// carries a larger part than they would if there were only as many shares as they are, and on the
// larger hosts more ranks have a part in the work (64, 64 and 1 ranks: 64 shares).
#pragma once

#include <span>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/patterns/tree.h"

namespace sluice {

// Whether there are two hosts or more, one of them with two ranks or more. `hosts` as in Shape.
bool has_levels(std::span<const uint32_t> hosts);
// Whether each host's ranks follow one another.
bool has_consecutive_ranks(std::span<const uint32_t> hosts);

// The hosts of a shape, as its rank sees them.
struct Hosts {
  explicit Hosts(const Shape& shape);

  // Moves the root to the first place on its host, before the ranks below it: it then leads there.
  void put_first(Rank root);

  uint32_t count() const { return static_cast<uint32_t>(ranks.size()); }
  Rank size_of(uint32_t host) const { return static_cast<Rank>(ranks[host].size()); }
  const std::vector<Rank>& here() const { return ranks[own]; }
  // Shares: as many for each rank of the smallest host as the largest has ranks for. On a host, its
  // ranks carry them in turns.
  Rank shares() const { return least * (most / least); }
  Rank leader_of(Rank share) const { return share % size_of(own); }  // its place here
  // Those who carry that share, one of each host.
  std::vector<Rank> across(Rank share) const;
  // Those that this rank carries, rising.
  std::vector<Rank> own_shares() const;
  // The most shares that a rank of a host of so many carries.
  Rank carried(Rank ranks) const { return (shares() + ranks - 1) / ranks; }
  bool even() const { return least == most; }
  uint32_t host_of(Rank rank) const { return hosts[rank]; }

  std::span<const uint32_t> hosts;       // by rank
  std::vector<std::vector<Rank>> ranks;  // by host, rising
  uint32_t own = 0;                      // this rank's host
  Rank place = 0;                        // and its place there
  Rank least = 0, most = 0;              // ranks of a host
};

// Binomial trees on two levels: among the ranks of each host, led by its first or the root, and
// among those leaders. Children are taken as in a TreeNode, those on the same host first, so that
// the order of ranks is kept where each host's are consecutive; the subtrees' runs are not filled
// in.
TreeNode hosts_tree(const Shape& shape);

}  // namespace sluice
