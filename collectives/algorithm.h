// SPDX-License-Identifier: BSD-3-Clause
//
// The algorithm contract: a pure function from a shape to a plan, and what is known about it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "collectives/plan.h"

namespace sluice {

enum class Collective : uint8_t {
  allreduce,
  reduce,
  broadcast,
  allgather,
  allgatherv,
  reduce_scatter,  // MPI_Reduce_scatter and MPI_Reduce_scatter_block
  alltoall,
  alltoallv,
  barrier,
};
inline constexpr uint32_t collective_count = 9;

std::string_view to_string(Collective collective);
// The collective of that name, as in rules and on the command line; false if there is none.
bool parse(std::string_view name, Collective* collective);

// Whether what a collective does depends on a root.
bool is_rooted(Collective collective);
// Whether it combines operands.
bool is_reducing(Collective collective);

// All that an algorithm may look at: equal on all ranks but for `rank`.
struct Shape {
  Rank rank = 0;
  Rank size = 1;
  Rank root = 0;       // 0 where the collective has none
  uint32_t radix = 2;  // for the algorithms that have one (bcube, trees)
  // The host of each rank, hosts numbered in the order of their lowest ranks; empty: one host, or
  // not known.
  std::span<const uint32_t> hosts = {};
};

// Of placements as in Shape::hosts: the hosts, and the ranks of the host that has most; 1 and 0
// where nothing is known.
uint32_t count_hosts(std::span<const uint32_t> hosts);
Rank most_per_host(std::span<const uint32_t> hosts);

// What an algorithm cannot do; it is never chosen there. Data, so that it can be listed.
struct Needs {
  bool power_of_two = false;  // of ranks
  bool commutative = false;   // does not keep operands in rank order
  bool fetching = false;      // ranks read each other's memory (direct algorithms)
  bool uniform = false;       // blocks of one size (not for allgatherv, reduce_scatter with counts)
  // Two hosts or more, one of them with two ranks or more. What combines operands keeps their order
  // only where each host's ranks are consecutive.
  bool hosts = false;
  // Two groups or more (collectives/direct/groups.h); the order of operands as with hosts.
  bool groups = false;
};

// How the operands of an element are bracketed. Floating-point sums depend on it: algorithms with
// one and the same bracketing give the same bits. The balanced tree is that of halving a run of
// ranks at the largest power of two under its length: ((0 1) (2 3)) ((4 5) 6) for seven. (Also
// known as pairwise summation, whose error grows with log p only: Higham, The accuracy of floating
// point summation, SIAM J. Sci. Comput. 14, 1993.)
enum class Bracketing : uint8_t {
  any,                        // another, or different from element to element or from root to root
  balanced_on_powers_of_two,  // the balanced tree, where the ranks are a power of two
  balanced,                   // the balanced tree, for every element, root and number of ranks
};

// The published cost, for S = the bytes of the whole vector (allreduce, reduce, broadcast), of the
// whole result (allgather), of the whole input (reduce_scatter, alltoall): what the proof holds the
// plan against.
struct Cost {
  double steps = 0;    // messages one after another on the critical path, each taken as one unit
  double bytes = 0;    // most bytes that any rank sends, in S (exact where p divides the elements)
  double scratch = 0;  // most scratch that any rank takes, in S
  // Of algorithms that look at hosts: most bytes that the ranks of any host send to other hosts.
  double between = 0;
  bool at_most = false;  // bounds, as where hosts have different numbers of ranks
};

class Rounds;
struct DirectCall;

// A plan's, or a direct one (collectives/direct/direct.h), for ranks that share memory; or a direct
// one that has its long blocks moved by a plan.
struct Algorithm {
  Collective collective;
  const char* name;
  const char* help;  // one line: what it is and when it is good
  Needs needs;
  Plan (*plan)(const Shape&);
  Cost (*cost)(const Shape&);               // over all ranks: does not depend on Shape::rank
  Bracketing bracketing = Bracketing::any;  // of collectives that combine
  bool (*direct)(Rounds&, const DirectCall&) = nullptr;  // then `plan` and `cost` may be null
  // A call's bytes are cut into at least so many segments where they would come out longer: for
  // plans that pass a vector from rank to rank, whose last rank starts that much later.
  uint32_t segments = 1;
  // Of alltoallv: `plan` moves cells of so many bytes, one for each pair of ranks, in which short
  // blocks go with their lengths; blocks that no cell holds go by the plan of `beside`.
  uint32_t cell = 0;
  const Algorithm* beside = nullptr;
  // Of direct ones: even the shortest call may go through slots (transports/arena.h).
  bool slots = false;
};

// The algorithm with so many segments at least, for the tables.
constexpr Algorithm in_segments(uint32_t segments, Algorithm algorithm) {
  algorithm.segments = segments;
  return algorithm;
}

// The registry: an explicit table, in a fixed order, the same in every build of one version.
std::span<const Algorithm> algorithms();
std::span<const Algorithm> algorithms(Collective collective);
// nullptr if there is none of that name.
const Algorithm* find_algorithm(Collective collective, std::string_view name);
// Whether the algorithm can serve so many ranks; operands in order if `ordered`; blocks of
// different sizes if `ragged`; on these hosts, as in Shape, and in these groups, numbered alike.
bool can_serve(const Algorithm& algorithm, Rank size, bool ordered, bool ragged,
               std::span<const uint32_t> hosts = {}, std::span<const uint32_t> groups = {});
// Whether so many ranks' operands are combined by the balanced tree.
bool is_balanced(const Algorithm& algorithm, Rank size);

// Where a collective's input may be its output's memory; what a PlanBuilder is made with.
PlanBuilder::Alias alias_of(Collective collective, Rank rank);

}  // namespace sluice
