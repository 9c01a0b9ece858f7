// SPDX-License-Identifier: BSD-3-Clause
//
// The localities of a team's ranks on their host, and what follows from them: whether the ranks are
// oversubscribed, and which groups they form. All ranks hold the same localities, so all ranks draw
// the same conclusions.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/host/locality.h"
#include "transports/shm/arena.h"

namespace sluice {

// Finds the Locality of the calling thread, with its cache and NUMA node if `domains` is true. An
// empty function: localities are not known.
using Locate = std::function<Locality(bool domains)>;

// From so many ranks on, those that share a cache or a node form groups.
inline constexpr uint32_t least_for_groups = 8;

// Round trips to other processes that were measured before. Any thread.
class RoundTrips {
 public:
  uint32_t find(const ProcessId& id) const;  // nanoseconds; 0: not measured
  void learn(const ProcessId& id, uint32_t nanoseconds);

 private:
  mutable std::mutex mutex_;
  std::map<ProcessId, uint32_t> known_;
};

// Collective over the arena of two ranks that do not share a processor: the shortest time that rank
// 0 saw a flag take to the other rank and back, in nanoseconds. (50 to 200 through a shared cache,
// 250 to 500 between sockets, thousands if they did share a processor.) False if the wait was given
// up.
bool measure_round_trip(Rounds& rounds, WaitPolicy& wait_policy, uint32_t* nanoseconds);

// The number of ranks for each processor of `rank`, rounded up; 1 if unknown. It is the largest of
// three numbers. The first counts the ranks that may run on this thread's processors only, per
// processor. The second counts those under its cgroup's quota, per processor of the quota. The
// third is what this process has found in other teams, whose ranks may share its processor too.
uint32_t ranks_per_processor(std::span<const Locality> localities, uint32_t rank);
// The largest such number of any rank.
uint32_t most_per_processor(std::span<const Locality> localities);

// The group of each rank, numbered in the order of their lowest ranks; empty: all are one. how:
// SLUICE_GROUPS. With auto, ranks form groups only if each has a processor of its own and is bound
// within a cache or a node. On oversubscribed processors each step between a rank and its leader
// costs a scheduling turn (a barrier of 8 ranks on 2 cores: 14 us in groups, 8 without).
std::vector<uint32_t> make_groups(const std::string& how, std::span<const Locality> localities);

// "0-3; 4-7": the groups' ranks.
std::string describe_groups(std::span<const uint32_t> groups);

}  // namespace sluice
