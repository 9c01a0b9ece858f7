// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/alltoall/bruck.h"

#include <bit>
#include <utility>
#include <vector>

#include "collectives/patterns/log2.h"
#include "collectives/patterns/ring.h"

namespace sluice {

Plan alltoall_bruck(const Shape& shape) {
  const Rank size = shape.size;
  PlanBuilder plan;
  std::vector<Piece> slots(size);
  for (Rank d = 1; d < size; ++d) {
    if (!std::has_single_bit(d)) slots[d] = plan.scratch({Area::input, shape.rank, {}});
  }
  // Where a block that must travel d places is stored after the hops for the bits below `bit`.
  const auto place = [&](Rank d, Rank bit) -> Piece {
    if ((d & (bit - 1)) == 0) return {Area::input, ahead(shape.rank, d, size), {}};
    const bool is_output = std::popcount(d & ~(bit - 1)) % 2 == 0;
    return is_output ? Piece{Area::output, behind(shape.rank, d, size), {}} : slots[d];
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

Cost alltoall_bruck_cost(const Shape& shape) {
  const double p = shape.size;
  double blocks = 0;
  for (Rank d = 1; d < shape.size; ++d) blocks += std::popcount(d);
  const double steps = shape.size > 1 ? 1 + ceil_log2((shape.size + 2) / 3) : 0;
  return {.steps = steps, .bytes = blocks / p, .scratch = (p - 1 - ceil_log2(shape.size)) / p};
}

}  // namespace sluice
