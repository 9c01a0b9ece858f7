// SPDX-License-Identifier: BSD-3-Clause
//
// The hosts that a team's ranks run on. Messages between hosts share the network; messages inside a
// host do not use it, and are fast. So algorithms for several hosts work on two levels (Karonis, de
// Supinski, Foster, Gropp, Lusk and Bresnahan, Exploiting hierarchy in parallel computer networks
// to optimize collective operation performance, IPDPS 2000; Traeff, Improved MPI all-to-all
// communication on a Giganet SMP cluster, EuroPVM/MPI 2002): the ranks of a host communicate with
// each other, and its leaders with the leaders of other hosts.
//
// One leader a host sends the fewest messages. For long vectors, each of several leaders carries a
// share (Bayatpour, Chakraborty, Subramoni, Lu and Panda, Scalable reduction collectives with data
// partitioning-based multi-leader design, SC 2017): all processors work, and a host's link carries
// no byte twice. The leader of a share talks to the leaders of the same share on the other hosts.
// If hosts have different numbers of ranks, ranks of the smallest host carry several shares each.
// No rank of any host carries a larger part than these would with one share each, and on larger
// hosts more ranks take part (64, 64 and 1 ranks: 64 shares).
//
// Algorithms on two levels are plans like all others, for any number of ranks on each host in any
// order. Messages on both levels are the same pieces, so what arrives from another host is passed
// on segment by segment. An arena serves only teams whose ranks all map it: in a team on several
// hosts, the ranks of one host exchange the plan's messages over links in shared memory. So one
// Execution overlaps both levels, and the proof covers both. (An 8-byte allreduce between two ranks
// of a host takes 0.6 us this way; one between hosts takes 90.)
#pragma once

#include <span>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/patterns/tree.h"

namespace sluice {

// Whether there are two hosts or more, one of them with two ranks or more. `hosts` as in Shape.
bool has_levels(std::span<const uint32_t> hosts);
// Whether each host's ranks are consecutive.
bool has_consecutive_ranks(std::span<const uint32_t> hosts);

// The hosts of a shape, as its rank sees them.
struct Hosts {
  explicit Hosts(const Shape& shape);

  // Moves the root to the first place on its host, so that it leads there. The others keep their
  // order.
  void put_first(Rank root);

  uint32_t count() const { return static_cast<uint32_t>(ranks.size()); }
  Rank size_of(uint32_t host) const { return static_cast<Rank>(ranks[host].size()); }
  const std::vector<Rank>& here() const { return ranks[own]; }
  // Number of shares: the largest multiple of the smallest host's ranks that is not above the
  // largest host's. The ranks of a host carry them round robin.
  Rank shares() const { return least * (most / least); }
  Rank leader_of(Rank share) const { return share % size_of(own); }  // its place on this host
  // The ranks that carry that share, one of each host.
  std::vector<Rank> across(Rank share) const;
  // The shares that this rank carries, ascending.
  std::vector<Rank> own_shares() const;
  // The most shares that any rank carries on a host with so many ranks.
  Rank carried(Rank ranks) const { return (shares() + ranks - 1) / ranks; }
  bool even() const { return least == most; }
  uint32_t host_of(Rank rank) const { return hosts[rank]; }

  std::span<const uint32_t> hosts;       // by rank
  std::vector<std::vector<Rank>> ranks;  // by host, ascending; see put_first
  uint32_t own = 0;                      // this rank's host
  Rank place = 0;                        // and its place there
  Rank least = 0, most = 0;              // ranks of the smallest and the largest host
};

// Binomial trees on two levels: among the ranks of each host, with its first rank or the root as
// leader, and among the leaders. Children are in the order of TreeNode, those on the same host
// first, so rank order is kept if each host's ranks are consecutive. The subtrees' runs of ranks
// are not filled in.
TreeNode hosts_tree(const Shape& shape);

}  // namespace sluice
