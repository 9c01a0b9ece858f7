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
#include <optional>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"
#include "collectives/scan/scan.h"

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

// One rank's steps.
class Doubling {
 public:
  Doubling(Collective collective, const Shape& shape)
      : collective_(collective),
        shape_(shape),
        plan_(alias_of(collective, shape.rank)),
        received_(plan_, all_input),
        kept_(plan_, all_input) {}

  Plan build() && {
    if (collective_ == Collective::scan) {
      result_ = all_input;
      if (shape_.rank == 0) plan_.copy(all_input, all_output);
    }
    for (Rank cube = 1; cube < shape_.size; cube *= 2) {
      const Rank peer = shape_.rank ^ cube;
      if (peer >= shape_.size) continue;
      if (peer > shape_.rank) {
        be_lower(peer, cube);
      } else {
        be_upper(peer, cube);
      }
    }
    return std::move(plan_).build();
  }

 private:
  // A block of scratch, from its first use.
  class Scratch {
   public:
    Scratch(PlanBuilder& plan, const Piece& like) : plan_(plan), like_(like) {}
    const Piece& operator*() {
      if (!piece_) piece_ = plan_.scratch(like_);
      return *piece_;
    }

   private:
    PlanBuilder& plan_;
    const Piece like_;
    std::optional<Piece> piece_;
  };

  void be_lower(Rank peer, Rank cube) {
    plan_.send(peer, cube_);
    if (!is_needed(shape_.rank, 2 * cube, shape_.size)) return;
    // Not into what is being sent: each side would wait for the other's receive.
    plan_.recv(peer, *received_);
    plan_.reduce(cube_, *received_, *kept_);
    cube_ = *kept_;
  }

  void be_upper(Rank peer, Rank cube) {
    const bool sends = is_needed(peer, 2 * cube, shape_.size);
    const bool keeps = is_needed(shape_.rank, 2 * cube, shape_.size);
    if (sends) plan_.send(peer, cube_);
    if (!sends && !keeps && !result_) {
      plan_.recv(peer, all_output);
      result_ = all_output;
      return;
    }
    plan_.recv(peer, *received_);
    // Before the result, which may overwrite the operand.
    if (keeps) plan_.reduce(*received_, cube_, *kept_);
    if (result_) {
      plan_.reduce(*received_, *result_, all_output);
    } else {
      plan_.copy(*received_, all_output);
    }
    result_ = all_output;
    if (keeps) cube_ = *kept_;
  }

  const Collective collective_;
  const Shape& shape_;
  PlanBuilder plan_;
  Scratch received_, kept_;
  Piece cube_ = all_input;       // the combination of this rank's cube
  std::optional<Piece> result_;  // so far
};

template <Collective collective>
Plan plan_doubling(const Shape& shape) {
  return Doubling(collective, shape).build();
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
