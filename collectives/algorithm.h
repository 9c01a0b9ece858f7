// SPDX-License-Identifier: BSD-3-Clause
//
// The algorithm contract: a pure function from a shape to a plan, with its restrictions and its
// published cost.
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
  scan,
  exscan,
  gather,
  gatherv,
  scatter,
  scatterv,
  alltoall,
  alltoallv,
  barrier,
};
inline constexpr uint32_t collective_count = 15;

std::string_view to_string(Collective collective);
// Finds a collective by its name in rules and on the command line; false if there is none.
bool parse(std::string_view name, Collective* collective);

// Whether the collective has a root.
bool is_rooted(Collective collective);
// Whether all ranks know the size of a call (Call::bytes): not where each knows its own blocks
// only.
constexpr bool has_common_size(Collective collective) {
  return collective != Collective::alltoallv && collective != Collective::gatherv &&
         collective != Collective::scatterv;
}
// Whether ranks get the combination of the operands of ranks up to theirs.
constexpr bool is_prefix(Collective collective) {
  return collective == Collective::scan || collective == Collective::exscan;
}
// Whether it combines operands.
bool is_reducing(Collective collective);
// How many ranks' operands make up that rank's result: ranks 0 to that number - 1. All, except in
// scan and exscan.
Rank operands_of(Collective collective, Rank rank, Rank size);

// All input of an algorithm. Equal on all ranks except for `rank`.
struct Shape {
  Rank rank = 0;
  Rank size = 1;
  Rank root = 0;       // 0 if the collective has none
  uint32_t radix = 2;  // for the algorithms that have one (bcube, trees)
  // The host number of each rank; hosts are numbered in the order of their lowest ranks. Empty: all
  // ranks are on one host, or hosts are not known.
  std::span<const uint32_t> hosts = {};
};

// `hosts` as in Shape. The number of hosts, and of ranks on the largest host; 1 and 0 if `hosts` is
// empty.
uint32_t count_hosts(std::span<const uint32_t> hosts);
Rank most_per_host(std::span<const uint32_t> hosts);

// Restrictions: an algorithm is never chosen for a call that violates one. They are data so that
// they can be listed.
struct Needs {
  bool power_of_two = false;  // number of ranks
  bool commutative = false;   // the operation must commute: operands are not kept in rank order
  bool cma = false;           // CMA get and put between all ranks (shared-memory algorithms)
  bool uniform = false;       // blocks of one size (no allgatherv, no reduce_scatter with counts)
  // Two hosts or more, one of them with two ranks or more. Reductions keep the order of operands
  // only if each host's ranks are consecutive; scans need that whatever the operation.
  bool hosts = false;
  // Two groups or more (collectives/shm/groups.h); the order of operands as with hosts.
  bool groups = false;
};

// How the operands of an element are bracketed. Floating-point results depend on it: algorithms
// with the same bracketing give the same bits. The balanced tree splits a run of ranks at the
// largest power of two below its length, and both halves likewise: ((0 1) (2 3)) ((4 5) 6) for
// seven ranks. (Also known as pairwise summation, whose error grows with log p only: Higham, The
// accuracy of floating point summation, SIAM J. Sci. Comput. 14, 1993.)
enum class Bracketing : uint8_t {
  any,                        // another, or one that depends on the element or the root
  left,                       // ((0 1) 2) 3 and so on, for every element, root and number of ranks
  balanced_on_powers_of_two,  // the balanced tree if the number of ranks is a power of two
  balanced,                   // the balanced tree, for every element, root and number of ranks
};

// The published cost, which the proof checks against the plan. S: bytes of the whole vector
// (allreduce, reduce, scan, exscan, broadcast), of the whole result (allgather, gather) or of the
// whole input (reduce_scatter, alltoall, scatter).
struct Cost {
  double steps = 0;    // messages in sequence on the critical path, each taken as one unit
  double bytes = 0;    // most bytes that any rank sends, in S (exact if p divides the elements)
  double scratch = 0;  // most scratch that any rank takes, in S
  // Only for algorithms that use Shape::hosts: most bytes that the ranks of any host send to other
  // hosts, in S.
  double between = 0;
  bool at_most = false;  // upper bounds, as when hosts have different numbers of ranks
};

class Rounds;
struct ShmCall;

// How many bytes a rank puts into the arena in one round of a shared-memory algorithm, at most. B:
// Call::bytes; p: ranks.
enum class RoundOf : uint8_t {
  all,               // B
  block,             // B / p; B if blocks differ in size
  blocks_of_others,  // (p - 1) B / p; (p - 1) B if blocks differ in size
  group,             // B; B p if blocks differ in size: room for the longest block of each rank
};

// How a call by an algorithm is run.
enum class Means : uint8_t {
  plan,           // the messages of its plan, over links
  cells,          // the same, and short blocks in cells (alltoallv)
  shared_memory,  // rounds in the arena (collectives/shm/shm.h)
  outside,        // by a carrier outside the engine, or by MPI (src/engine/routes.h)
};

// An algorithm is a constant in the file that implements it.
struct Algorithm {
  Collective collective;
  const char* name;
  const char* help;  // one line: what it does and when it is good
  Needs needs = {};
  Plan (*plan)(const Shape&) = nullptr;
  Cost (*cost)(const Shape&) = nullptr;     // over all ranks; does not depend on Shape::rank
  Bracketing bracketing = Bracketing::any;  // only for reductions
  bool (*shm)(Rounds&, const ShmCall&) = nullptr;
  // Least number of segments that a call's bytes are cut into, unless these become too short. For
  // plans that pass a vector from rank to rank: the longer a segment, the later the last rank
  // starts.
  uint32_t segments = 1;
  // Only for alltoallv: `plan` moves cells of so many bytes, one for each pair of ranks. A short
  // block goes in its cell together with its length; longer blocks go by the plan of `beside`.
  uint32_t cell = 0;
  const Algorithm* beside = nullptr;
  // Only for shared-memory ones: even the shortest call may use slots (transports/shm/arena.h).
  bool slots = false;
  RoundOf round = RoundOf::all;  // the same

  constexpr Means means() const {
    if (shm) return Means::shared_memory;
    if (cell > 0) return Means::cells;
    return plan ? Means::plan : Means::outside;
  }
};

// The algorithm, serving another collective.
constexpr Algorithm serving(Collective collective, Algorithm algorithm) {
  algorithm.collective = collective;
  return algorithm;
}

// The registry: an explicit table, in a fixed order, the same in every build of one version.
std::span<const Algorithm> algorithms();
std::span<const Algorithm> algorithms(Collective collective);
// The algorithm of that name, or nullptr.
const Algorithm* find_algorithm(Collective collective, std::string_view name);
// Whether the algorithm can serve so many ranks on these hosts (as in Shape) and in these groups
// (numbered alike). ordered: operands must be combined in rank order. ragged: blocks differ in
// size.
bool can_serve(const Algorithm& algorithm, Rank size, bool ordered, bool ragged,
               std::span<const uint32_t> hosts = {}, std::span<const uint32_t> groups = {});
// Whether it combines the operands of so many ranks by the balanced tree.
bool is_balanced(const Algorithm& algorithm, Rank size);
// Whether it combines them one after the other, in rank order.
bool is_left_to_right(const Algorithm& algorithm, Rank size);

// Which part of a collective's output its input may share memory with: an argument of PlanBuilder.
PlanBuilder::Alias alias_of(Collective collective, Rank rank);

}  // namespace sluice
