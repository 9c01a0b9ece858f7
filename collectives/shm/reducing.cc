// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/shm/cuts.h"

#include "src/base/copy.h"

namespace sluice {
namespace {

// Reduce and allreduce in which each rank combines a share of each round. A round passes three
// stages (put, combine, gather), each a round behind the one before, so that no rank waits for what
// others are just doing.
class SplitReduction {
 public:
  SplitReduction(Rounds& rounds, const ShmCall& call, bool gathers)
      : rounds_(rounds),
        call_(call),
        gathers_(gathers),
        input_(call.all(call.input)),
        output_(call.output.base),
        pieces_{input_.size, whole_elements(long_piece(call), call.element)} {}

  bool run() {
    const uint64_t last = pieces_.count();
    for (uint64_t i = 1; i <= last + 2; ++i) {
      if (i <= last && !put(i)) return false;
      if (i > 1 && i <= last + 1 && !combine(i - 1)) return false;
      if (i > 2 && !gather(i - 2)) return false;
    }
    rounds_.end(last);
    return true;
  }

 private:
  std::byte* slot(Rank rank, uint64_t k) const {
    return rounds_.data(rank, k, ArenaSlot::capacity);
  }
  Bytes share_of(std::byte* data, uint64_t k, Rank rank) const {
    return share(data, pieces_.size(k), call_.element, rank, rounds_.size());
  }

  // Publishes the shares that other ranks combine.
  bool put(uint64_t k) {
    if (!rounds_.open(k, ArenaSlot::capacity)) return false;
    std::byte* const to = slot(rounds_.rank(), k);
    const std::byte* const from = input_.data + pieces_.begin(k);
    const Bytes own = share_of(to, k, rounds_.rank());
    const size_t before = static_cast<size_t>(own.data - to), behind = before + own.size;
    move_bytes(to, from, before);
    move_bytes(to + behind, from + behind, pieces_.size(k) - behind);
    rounds_.publish(k, pieces_.size(k));
    return true;
  }

  bool combine(uint64_t k) {
    if (!await_all(rounds_, k, pieces_.size(k))) return false;
    const Rank me = rounds_.rank();
    const Bytes result = share_of(slot(me, k), k, me);
    const std::byte* const own = input_.data + pieces_.begin(k) + (result.data - slot(me, k));
    const auto operand = [&](Rank rank) -> const std::byte* {
      return rank == me ? own : share_of(slot(rank, k), k, me).data;
    };
    combine_in_order(call_, rounds_.size(), operand, result.data, result.size);
    rounds_.combine(k);
    return true;
  }

  bool gather(uint64_t k) {
    if (gathers_) {
      if (!await_all_combined(rounds_, k)) return false;
      for (Rank rank = 0; rank < rounds_.size(); ++rank) {
        const Bytes from = share_of(slot(rank, k), k, rank);
        move_bytes(output_ + pieces_.begin(k) + (from.data - slot(rank, k)), from.data, from.size);
      }
    }
    rounds_.mark_taken(k);
    return true;
  }

  Rounds& rounds_;
  const ShmCall& call_;
  const bool gathers_;
  const Bytes input_;
  std::byte* const output_;
  const Cuts pieces_;
};

// Every rank combines all operands, in rank order: each reads (p - 1) V bytes.
bool run_allreduce(Rounds& rounds, const ShmCall& call) {
  const Bytes input = call.all(call.input);
  const Cuts pieces{input.size, whole_elements(slot_piece(rounds, call), call.element)};
  const Rank me = rounds.rank();
  const auto put = [&](uint64_t k) {
    const size_t bytes = pieces.size(k);
    if (!rounds.open(k, bytes)) return false;
    copy_bytes(rounds.data(me, k, bytes), input.data + pieces.begin(k), bytes);
    rounds.publish(k, bytes);
    return true;
  };
  const uint64_t last = pieces.count();
  if (last > 0 && !put(1)) return false;
  for (uint64_t k = 1; k <= last; ++k) {
    if (k < last && !put(k + 1)) return false;
    const size_t bytes = pieces.size(k);
    if (!await_all(rounds, k, bytes)) return false;
    const auto operand = [&](Rank rank) { return rounds.data(rank, k, bytes); };
    combine_in_order(call, rounds.size(), operand, call.output.base + pieces.begin(k), bytes);
    rounds.mark_taken(k);
  }
  rounds.end(last);
  return true;
}

// The root combines all operands: it reads (p - 1) V bytes, with V the bytes of the vector.
bool run_reduce(Rounds& rounds, const ShmCall& call) {
  const Bytes input = call.all(call.input);
  const Cuts pieces{input.size, whole_elements(slot_piece(rounds, call), call.element)};
  const Rank me = rounds.rank();
  // The root's own operand is read in place, unless the result of ranks 0 and 1 would overwrite it.
  const bool is_put = me != call.root || (me > 1 && input.data == call.output.base);
  for (uint64_t k = 1; k <= pieces.count(); ++k) {
    const size_t at = pieces.begin(k), bytes = pieces.size(k);
    if (is_put) {
      if (!rounds.open(k, bytes)) return false;
      copy_bytes(rounds.data(me, k, bytes), input.data + at, bytes);
    }
    if (me != call.root) {
      rounds.publish(k, bytes);
    } else {
      if (!await_all(rounds, k, bytes)) return false;
      const auto operand = [&](Rank rank) {
        return rank == me && !is_put ? input.data + at : rounds.data(rank, k, bytes);
      };
      combine_in_order(call, rounds.size(), operand, call.output.base + at, bytes);
    }
    rounds.mark_taken(k);
  }
  rounds.end(pieces.count());
  return true;
}

// Every rank combines its share, all gather the shares: each reads 2 (p - 1) / p V bytes.
bool run_allreduce_split(Rounds& rounds, const ShmCall& call) {
  return SplitReduction(rounds, call, true).run();
}

// Every rank combines its share, the root gathers the shares.
bool run_reduce_split(Rounds& rounds, const ShmCall& call) {
  return SplitReduction(rounds, call, rounds.rank() == call.root).run();
}

// Every rank combines its block.
bool run_reduce_scatter(Rounds& rounds, const ShmCall& call) {
  const Rank me = rounds.rank(), ranks = rounds.size();
  size_t longest = 0, total = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const size_t bytes = call.block(call.input, rank).size;
    longest = std::max(longest, bytes);
    total += bytes;
  }
  const Dealing dealing(rounds, call, longest, call.element);
  const uint64_t last = Cuts{longest, dealing.piece()}.count();
  const auto put = [&](uint64_t k) {
    if (!rounds.open(k, dealing.room())) return false;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Bytes block = call.block(call.input, rank);
      const Cuts pieces{block.size, dealing.piece()};
      if (rank != me)
        move_bytes(dealing.place(me, rank, k), block.data + pieces.begin(k), pieces.size(k));
    }
    rounds.publish(k, total);
    return true;
  };
  const Bytes own = call.block(call.input, me);
  const Cuts mine{own.size, dealing.piece()};
  for (uint64_t k = 0; k <= last; ++k) {
    if (k < last && !put(k + 1)) return false;
    if (k == 0) continue;
    // A rank with nothing to combine does not wait.
    if (mine.size(k) > 0 && !await_all(rounds, k, total)) return false;
    const auto operand = [&](Rank rank) -> const std::byte* {
      return rank == me ? own.data + mine.begin(k) : dealing.place(rank, me, k);
    };
    combine_in_order(call, ranks, operand, call.output.base + mine.begin(k), mine.size(k));
    rounds.mark_taken(k);
  }
  rounds.end(last);
  return true;
}

}  // namespace

constexpr Algorithm shm_allreduce = {
    .collective = Collective::allreduce,
    .name = "flat",
    .help = "shared memory; every rank combines all: small messages",
    .bracketing = Bracketing::left,
    .shm = run_allreduce,
};

constexpr Algorithm shm_reduce = {
    .collective = Collective::reduce,
    .name = "flat",
    .help = "shared memory; the root combines all: small messages",
    .bracketing = Bracketing::left,
    .shm = run_reduce,
};

constexpr Algorithm shm_allreduce_split = {
    .collective = Collective::allreduce,
    .name = "split",
    .help = "shared memory; every rank combines a share: large messages",
    .bracketing = Bracketing::left,
    .shm = run_allreduce_split,
    .slots = true,
};

constexpr Algorithm shm_reduce_split = {
    .collective = Collective::reduce,
    .name = "split",
    .help = "shared memory; every rank combines a share: large messages",
    .bracketing = Bracketing::left,
    .shm = run_reduce_split,
    .slots = true,
};

constexpr Algorithm shm_reduce_scatter = {
    .collective = Collective::reduce_scatter,
    .name = "flat",
    .help = "shared memory; every rank combines its block",
    .bracketing = Bracketing::left,
    .shm = run_reduce_scatter,
    .round = RoundOf::blocks_of_others,
};

}  // namespace sluice
