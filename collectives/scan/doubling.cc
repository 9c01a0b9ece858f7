// SPDX-License-Identifier: BSD-3-Clause
//
// Scan and exscan by recursive doubling: a cube of 2^k neighbouring ranks knows the combination of
// all its operands; the upper half of each cube twice as large puts the lower half's before its
// results (hypercube prefix: Blelloch, Prefix sums and their applications, 1990; MPICH does so,
// too). What a rank learns of its cube is only sent where a later step needs it.
//
// Cost: ceil(log2 p) steps; each rank sends at most ceil(log2 p) x S.
// Order: kept, by the balanced tree: rank 6's result is ((0 1)(2 3)) ((4 5) 6).
// Scratch: at most 2 S.
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"
#include "collectives/scan/recursion.h"

namespace sluice {

namespace {

// Whether the rank's cube of so many ranks (as many of them as there are) must know its
// combination: it is sent to an upper half, or is part of a larger one that is.
bool is_needed(Rank rank, Rank cube, Rank size) {
  for (; cube < size; cube *= 2) {
    if ((rank & cube) == 0 && rank + cube < size) return true;
    rank &= ~cube;  // an upper half tells the lower half's ranks
  }
  return false;
}

}  // namespace

std::optional<Piece> ScanDoubling::run(Rank rank, Rank size) {
  if (collective_ == Collective::scan) result_ = cube_;
  for (Rank cube = 1; cube < size; cube *= 2) {
    const Rank peer = rank ^ cube;
    if (peer >= size) continue;
    const bool keeps = is_needed(rank, 2 * cube, size);
    if (peer > rank) {
      be_lower(peer, keeps);
    } else {
      be_upper(peer, is_needed(peer, 2 * cube, size), keeps);
    }
  }
  return result_;
}

void ScanDoubling::be_lower(Rank peer, bool keeps) {
  plan_.send(peer, cube_);
  if (!keeps) return;
  // Not into what is being sent: each side would wait for the other's receive.
  plan_.recv(peer, *received_);
  plan_.reduce(cube_, *received_, *kept_);
  cube_ = *kept_;
}

void ScanDoubling::be_upper(Rank peer, bool sends, bool keeps) {
  if (sends) plan_.send(peer, cube_);
  if (!sends && !keeps && !result_) {
    plan_.recv(peer, place_);
    result_ = place_;
    return;
  }
  plan_.recv(peer, *received_);
  // Before the result, which may overwrite the operand.
  if (keeps) plan_.reduce(*received_, cube_, *kept_);
  if (result_) {
    plan_.reduce(*received_, *result_, place_);
  } else {
    plan_.copy(*received_, place_);
  }
  result_ = place_;
  if (keeps) cube_ = *kept_;
}

namespace {

template <Collective collective>
Plan plan_doubling(const Shape& shape) {
  PlanBuilder plan(alias_of(collective, shape.rank));
  ScanDoubling doubling(plan, collective, all_input, all_output);
  const auto result = doubling.run(shape.rank, shape.size);
  if (result && *result == all_input) plan.copy(all_input, all_output);
  return std::move(plan).build();
}

Cost doubling_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const double steps = ceil_log2(shape.size);
  return {.steps = steps, .bytes = steps, .scratch = 2, .at_most = true};
}

}  // namespace

constexpr Algorithm scan_doubling = {
    .collective = Collective::scan,
    .name = "doubling",
    .help = "exchanges of all data at doubling distances: small messages",
    .plan = plan_doubling<Collective::scan>,
    .cost = doubling_cost,
    .bracketing = Bracketing::balanced,
};

constexpr Algorithm exscan_doubling = {
    .collective = Collective::exscan,
    .name = "doubling",
    .help = "exchanges of all data at doubling distances: small messages",
    .plan = plan_doubling<Collective::exscan>,
    .cost = doubling_cost,
    .bracketing = Bracketing::balanced,
};

}  // namespace sluice
