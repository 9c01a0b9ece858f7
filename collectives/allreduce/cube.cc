// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/cube.h"

#include <vector>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/radix.h"

namespace sluice {

namespace {

// A round of one group of ranks, and the chunks that it divides: `share` chunks (of `of`) for each
// member, from `first` on.
struct Round {
  const Fold& fold;
  Rank in_core;
  Digit digit;
  uint32_t first, share, of;

  uint32_t own() const { return digit.of(in_core); }
  Rank rank(uint32_t member) const { return fold.from_core(digit.with(in_core, member)); }
  Piece part(const Piece& of_all, uint32_t member) const {
    return chunks(of_all, first + member * share, first + (member + 1) * share, of);
  }

  // Visits the other members, those after this rank first, so that not all send to the same one at
  // once.
  template <typename Visit>  // void(uint32_t member)
  void for_others(Visit visit) const {
    for (uint32_t member = own() + 1; member < digit.radix; ++member) visit(member);
    for (uint32_t member = 0; member < own(); ++member) visit(member);
  }
};

std::vector<Round> rounds_of(Rank in_core, const Fold& fold, uint32_t radix) {
  std::vector<Round> rounds;
  uint32_t first = 0, share = fold.core;
  for (const Digit& digit : digits_of(fold.core, radix)) {
    share /= digit.radix;
    rounds.push_back({fold, in_core, digit, first, share, fold.core});
    first += digit.of(in_core) * share;
  }
  return rounds;
}

// Adds operands to the left and to the right of the sum, nearest first, so it always stands for a
// run of ranks.
void reduce_scatter(PlanBuilder& plan, const Round& round, const Piece& source,
                    const Piece& result) {
  round.for_others(
      [&](uint32_t member) { plan.send(round.rank(member), round.part(source, member)); });
  const uint32_t own = round.own();
  Piece sum = round.part(source, own);
  const auto add_operand_of = [&](uint32_t member) {
    const Piece total = round.part(result, own);
    plan.recv_reduce(round.rank(member), sum, total, member < own);
    sum = total;
  };
  for (uint32_t member = own; member-- > 0;) add_operand_of(member);
  for (uint32_t member = own + 1; member < round.digit.radix; ++member) add_operand_of(member);
}

void allgather(PlanBuilder& plan, const Round& round, const Piece& result) {
  round.for_others(
      [&](uint32_t member) { plan.send(round.rank(member), round.part(result, round.own())); });
  round.for_others(
      [&](uint32_t member) { plan.recv(round.rank(member), round.part(result, member)); });
}

}  // namespace

void cube_allreduce(PlanBuilder& plan, Rank rank, const Fold& fold, uint32_t radix, Piece source,
                    const Piece& total) {
  const std::vector<Round> rounds = rounds_of(fold.to_core(rank), fold, radix);
  for (const Round& round : rounds) {
    reduce_scatter(plan, round, source, total);
    source = total;
  }
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round)
    allgather(plan, *round, total);
}

}  // namespace sluice
