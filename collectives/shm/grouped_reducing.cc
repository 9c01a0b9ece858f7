// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/shm/grouped.h"

#include "src/base/copy.h"

namespace sluice {
namespace {

// Reductions in which leaders combine their groups' operands, and then somebody what came of that:
// in rank order where each group's ranks are consecutive.
class GroupedReduction {
 public:
  GroupedReduction(Rounds& rounds, const ShmCall& call, Rank root)
      : rounds_(rounds),
        call_(call),
        grouped_(rounds, call, root),
        input_(call.all(call.input)),
        pieces_{input_.size, whole_elements(ArenaSlot::capacity, call.element)} {}

  const Grouped& grouped() const { return grouped_; }
  const Cuts& pieces() const { return pieces_; }

  // A follower's operand, piece i, in round k.
  bool put(uint64_t i, uint64_t k) {
    const size_t bytes = pieces_.size(i);
    if (!rounds_.open(k, bytes)) return false;
    copy_bytes(rounds_.data(rounds_.rank(), k, bytes), input_.data + pieces_.begin(i), bytes);
    rounds_.publish(k, bytes);
    return true;
  }
  // A leader's group's, combined. Its own operand is not needed any more then.
  bool combine_group(uint64_t i, uint64_t k) {
    const size_t bytes = pieces_.size(i);
    const std::vector<Rank>& here = grouped_.groups().here();
    if (!grouped_.await_followers(k, bytes) || !rounds_.open(k, bytes)) return false;
    const auto operand = [&](Rank at) -> const std::byte* {
      const bool is_own = here[at] == rounds_.rank();
      return is_own ? input_.data + pieces_.begin(i) : rounds_.data(here[at], k, bytes);
    };
    combine_in_order(call_, static_cast<Rank>(here.size()), operand,
                     rounds_.data(rounds_.rank(), k, bytes), bytes);
    rounds_.publish(k, bytes);
    return true;
  }
  // All groups', combined into `out`.
  bool combine_groups(uint64_t i, uint64_t k, std::byte* out) {
    const size_t bytes = pieces_.size(i);
    if (!grouped_.await_leaders(k, bytes)) return false;
    const auto operand = [&](Rank group) { return rounds_.data(grouped_.leader(group), k, bytes); };
    combine_in_order(call_, grouped_.groups().count(), operand, out, bytes);
    return true;
  }

 private:
  Rounds& rounds_;
  const ShmCall& call_;
  const Grouped grouped_;
  const Bytes input_;
  const Cuts pieces_;
};

// Leaders combine their groups' operands, the root or all leaders what came of that.
bool run_reduce_grouped(Rounds& rounds, const ShmCall& call) {
  GroupedReduction reduction(rounds, call, call.root);
  const Cuts& pieces = reduction.pieces();
  for (uint64_t k = 1; k <= pieces.count(); ++k) {
    const bool leads = reduction.grouped().leads();
    if (!(leads ? reduction.combine_group(k, k) : reduction.put(k, k))) return false;
    if (rounds.rank() == call.root &&
        !reduction.combine_groups(k, k, call.output.base + pieces.begin(k))) {
      return false;
    }
    rounds.mark_taken(k);
  }
  rounds.end(pieces.count());
  return true;
}

// Piece i takes rounds 2i - 1, with operands and the groups' results, and 2i, with the result.
bool run_allreduce_grouped(Rounds& rounds, const ShmCall& call) {
  GroupedReduction reduction(rounds, call, 0);
  const Grouped& grouped = reduction.grouped();
  const Cuts& pieces = reduction.pieces();
  for (uint64_t i = 1; i <= pieces.count(); ++i) {
    const uint64_t first = 2 * i - 1, last = 2 * i;
    const size_t bytes = pieces.size(i);
    std::byte* const out = call.output.base + pieces.begin(i);
    if (!grouped.leads()) {
      if (!reduction.put(i, first)) return false;
      if (!grouped.await_leader(first, bytes, last, bytes)) return false;
      copy_bytes(out, rounds.data(grouped.leader(), last, bytes), bytes);
    } else if (!grouped.has_followers()) {
      if (!reduction.combine_group(i, first)) return false;
      if (!reduction.combine_groups(i, first, out)) return false;
    } else {
      std::byte* const own = rounds.data(rounds.rank(), last, bytes);
      if (!reduction.combine_group(i, first) || !rounds.open(last, bytes)) return false;
      if (!reduction.combine_groups(i, first, own)) return false;
      rounds.publish(last, bytes);
      copy_bytes(out, own, bytes);
    }
    rounds.mark_taken(last);
  }
  rounds.end(2 * pieces.count());
  return true;
}

}  // namespace

constexpr Algorithm shm_reduce_grouped = {
    .collective = Collective::reduce,
    .name = "grouped",
    .help = "shared memory; groups combine theirs, then the root: small messages",
    .needs = {.groups = true},
    .shm = run_reduce_grouped,
};

constexpr Algorithm shm_allreduce_grouped = {
    .collective = Collective::allreduce,
    .name = "grouped",
    .help = "shared memory; groups combine theirs, then their leaders: small messages",
    .needs = {.groups = true},
    .shm = run_allreduce_grouped,
};

}  // namespace sluice
