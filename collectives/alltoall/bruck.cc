// SPDX-License-Identifier: BSD-3-Clause
//
// Bruck's all-to-all, for blocks of one size: a block that must travel d places goes in hops of the
// powers of two that sum to d, smallest first. In round k each rank sends all blocks whose d has
// bit k to the rank 2^k places ahead, as one message.
//
// Blocks are not rotated before or after: messages are gathered and scattered. Between hops a block
// is stored alternately in scratch and in the output, at the place where the block with the same d
// ends, so that its last hop ends in its place (Traeff, Rougier and Hunold, Implementing a classic:
// zero-copy all-to-all communication with MPI datatypes, ICS 2014).
//
// Cost (Bruck, Ho, Kipnis, Upfal and Weathersby, Efficient algorithms for all-to-all communications
// in multiport message-passing systems, IEEE TPDS 8, 1997): ceil(log2 p) rounds, and about
// ceil(log2 p)/2 x S from each rank (exact for powers of two): in round k, as many blocks as there
// are numbers below p with bit k. The last round does not wait for the one before if no d has the
// bits of both, so the critical path has 1 + ceil(log2(p/3)) steps, for p > 1.
// Scratch: (p-1 - ceil(log2 p))/p x S, a block for each d that is not a power of two.
#include "collectives/alltoall/alltoall.h"

#include <bit>
#include <utility>
#include <vector>

#include "collectives/patterns/log2.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Plan plan_bruck(const Shape& shape) {
  const Rank size = shape.size;
  PlanBuilder plan;
  std::vector<Piece> scratch(size);
  for (Rank d = 1; d < size; ++d) {
    if (!std::has_single_bit(d)) scratch[d] = plan.scratch({Area::input, shape.rank, {}});
  }
  // Where a block that must travel d places is stored after the hops for the bits below `bit`.
  const auto place = [&](Rank d, Rank bit) -> Piece {
    if ((d & (bit - 1)) == 0) return {Area::input, ahead(shape.rank, d, size), {}};
    const bool is_output = std::popcount(d & ~(bit - 1)) % 2 == 0;
    return is_output ? Piece{Area::output, behind(shape.rank, d, size), {}} : scratch[d];
  };
  for (Rank bit = 1; bit < size; bit *= 2) {
    std::vector<Piece> out, in;
    for (Rank d = bit; d < size; ++d) {
      if ((d & bit) == 0) continue;
      out.push_back(place(d, bit));
      in.push_back(place(d, 2 * bit));
    }
    plan.send(ahead(shape.rank, bit, size), out);
    plan.recv(behind(shape.rank, bit, size), in);
  }
  plan.copy(Piece{Area::input, shape.rank, {}}, Piece{Area::output, shape.rank, {}});
  return std::move(plan).build();
}

Cost bruck_cost(const Shape& shape) {
  const double p = shape.size;
  double blocks = 0;
  for (Rank d = 1; d < shape.size; ++d) blocks += std::popcount(d);
  const double steps = shape.size > 1 ? 1 + ceil_log2((shape.size + 2) / 3) : 0;
  return {.steps = steps, .bytes = blocks / p, .scratch = (p - 1 - ceil_log2(shape.size)) / p};
}

}  // namespace

constexpr Algorithm alltoall_bruck = {
    .collective = Collective::alltoall,
    .name = "bruck",
    .help = "log2 p messages of many blocks: short blocks, many ranks",
    .needs = {.uniform = true},
    .plan = plan_bruck,
    .cost = bruck_cost,
};

}  // namespace sluice
