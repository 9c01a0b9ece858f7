// SPDX-License-Identifier: BSD-3-Clause
//
// Gather and scatter. Where long blocks go with one copy (CMA), the ranks beside the root copy, all
// at once.
#include "collectives/shm/published_buffers.h"
#include "collectives/shm/root_table.h"

namespace sluice {
namespace {

bool is_root(const Rounds& rounds, const ShmCall& call) { return rounds.rank() == call.root; }

// Without data there is one round, too: a rank that has some would wait for one that takes none.
uint64_t rounds_of(const Cuts& pieces) { return std::max(pieces.count(), uint64_t{1}); }

bool get_pieces(Rounds& rounds, const ShmCall& call, uint64_t k, const Cuts& pieces) {
  for (Rank rank = 0; rank < rounds.size(); ++rank) {
    if (rank == call.root) continue;
    if (!rounds.await(rank, k, pieces.size(k))) return false;
    move_bytes(call.block(call.output, rank).data + pieces.begin(k),
               rounds.data(rank, k, pieces.size(k)), pieces.size(k));
  }
  return true;
}

bool run_gather(Rounds& rounds, const ShmCall& call) {
  const Bytes own = call.all(call.input);
  const Cuts pieces{own.size, slot_piece(rounds, call)};
  if (is_root(rounds, call))
    move_bytes(call.block(call.output, call.root).data, own.data, own.size);
  const uint64_t last = rounds_of(pieces);
  for (uint64_t k = 1; k <= last; ++k) {
    const size_t bytes = pieces.size(k);
    if (is_root(rounds, call)) {
      if (!get_pieces(rounds, call, k, pieces)) return false;
    } else {
      if (!rounds.open(k, bytes)) return false;
      move_bytes(rounds.data(rounds.rank(), k, bytes), own.data + pieces.begin(k), bytes);
      rounds.publish(k, bytes);
    }
    rounds.mark_taken(k);
  }
  rounds.end(last);
  return true;
}

// Deals the k-th pieces of long blocks in round before + k.
bool put_pieces(Rounds& rounds, const ShmCall& call, const Dealing& dealing, uint64_t before,
                uint64_t k, size_t claim, size_t longest_kept = 0) {
  if (!rounds.open(before + k, dealing.room())) return false;
  for (Rank rank = 0; rank < rounds.size(); ++rank) {
    const Bytes block = call.block(call.input, rank);
    if (rank == call.root || block.size <= longest_kept) continue;
    const Cuts pieces{block.size, dealing.piece()};
    move_bytes(dealing.place(call.root, rank, before + k), block.data + pieces.begin(k),
               pieces.size(k));
  }
  rounds.publish(before + k, claim);
  return true;
}

bool run_scatter(Rounds& rounds, const ShmCall& call) {
  const Bytes own = call.all(call.output);
  const Dealing dealing(rounds, call, own.size, 1);
  const Cuts pieces{own.size, dealing.piece()};
  const uint64_t last = rounds_of(pieces);
  for (uint64_t k = 1; k <= last; ++k) {
    if (is_root(rounds, call)) {
      if (!put_pieces(rounds, call, dealing, 0, k, own.size)) return false;
    } else {
      if (!rounds.await(call.root, k, own.size)) return false;
      move_bytes(own.data + pieces.begin(k), dealing.place(call.root, rounds.rank(), k),
                 pieces.size(k));
    }
    rounds.mark_taken(k);
  }
  if (is_root(rounds, call)) move_bytes(own.data, call.block(call.input, call.root).data, own.size);
  rounds.end(last);
  return true;
}

enum class LongBlocks : bool { in_rounds, by_cma };

// What gatherv and scatterv have in common: the root's view of all ranks' blocks.
class RaggedBlocks {
 public:
  RaggedBlocks(Rounds& rounds, const ShmCall& call, const Blocks& blocks)
      : rounds_(rounds), call_(call), blocks_(blocks), table_(rounds, call) {}

  RootTable& table() { return table_; }
  bool is_long(size_t bytes) const { return !table_.is_short(bytes); }
  // The longest of other ranks' long blocks; 0: there is none.
  size_t longest() const {
    size_t most = 0;
    visit_long([&](Rank, const Bytes& block) {
      most = std::max(most, block.size);
      return true;
    });
    return most;
  }
  // Whether the kernel is to copy all long blocks, and can. (Of two ranks, a block that takes a few
  // short slots is as quick through them.)
  bool pay_cma(size_t longest) const {
    if (rounds_.size() == 2 && longest <= RootTable::longest_short) return false;
    return visit_long([&](Rank, const Bytes& block) {
      return rounds_.cma()->is_in_reach(block.data, block.size);
    });
  }
  void touch() const {
    visit_long([](Rank, const Bytes& block) {
      touch_pages(block);
      return true;
    });
  }
  // visit(rank, block) of each long block of another rank, until it returns false.
  template <typename Visit>
  bool visit_long(const Visit& visit) const {
    for (Rank rank = 0; rank < rounds_.size(); ++rank) {
      const Bytes block = call_.block(blocks_, rank);
      if (rank != call_.root && is_long(block.size) && !visit(rank, block)) return false;
    }
    return true;
  }
  // Long blocks' addresses are in the table.
  bool publish(bool sends, const RootTable::Head& head) {
    return table_.publish(blocks_, sends, head,
                          [&](Rank rank) { return address_of(call_.block(blocks_, rank).data); });
  }

 private:
  Rounds& rounds_;
  const ShmCall& call_;
  const Blocks& blocks_;
  RootTable table_;
};

// Gatherv. In round 1 each rank but the root tells the length of its block, and sends it if it is
// short. Long ones are put into the root's memory, or go in further rounds, a piece each.
class GatheringAtRoot {
 public:
  GatheringAtRoot(Rounds& rounds, const ShmCall& call, LongBlocks way)
      : rounds_(rounds),
        call_(call),
        way_(way),
        piece_(slot_piece(rounds, call)),
        blocks_(rounds, call, call.output) {}

  bool run() { return is_root(rounds_, call_) ? run_root() : run_other(); }

 private:
  Cuts cut(size_t bytes) const { return {bytes, piece_}; }

  bool run_root() {
    RootTable::Head head{.longest = blocks_.longest()};
    const bool puts = way_ == LongBlocks::by_cma && blocks_.pay_cma(head.longest);
    puts ? blocks_.touch() : void(head.rounds = cut(head.longest).count());
    if (!blocks_.publish(false, head)) return false;
    const Bytes own = call_.all(call_.input);
    const OwnBlock block{call_.block(call_.output, call_.root).data, own,
                         2 * own.size * rounds_.size()};
    block.move_first();
    for (Rank rank = 0; rank < rounds_.size(); ++rank) {
      if (rank != call_.root && !get_first(rank)) return false;
    }
    block.move_last();
    rounds_.mark_taken(1);
    for (uint64_t k = 1; k <= head.rounds; ++k) {
      if (!get_further(k)) return false;
    }
    if (puts && head.longest > 0 && !rounds_.await_taken(1)) return false;
    rounds_.end(1 + head.rounds);
    return true;
  }
  bool get_first(Rank rank) {
    const std::byte* const from = rounds_.await_data(rank, 1);
    if (!from) return false;
    uint64_t bytes;
    std::memcpy(&bytes, from, sizeof(bytes));
    const Bytes to = call_.block(call_.output, rank);
    if (bytes != to.size) return rounds_.disagree(rank, bytes, to.size);
    if (!blocks_.is_long(bytes))
      move_bytes(to.data, from + begin_of_data(sizeof(bytes), bytes), bytes);
    return true;
  }
  bool get_further(uint64_t k) {
    const bool good = blocks_.visit_long([&](Rank rank, const Bytes& block) {
      const size_t bytes = cut(block.size).size(k);
      if (bytes == 0) return true;
      if (!rounds_.await(rank, 1 + k, bytes)) return false;
      copy_bytes(block.data + cut(block.size).begin(k), rounds_.data(rank, 1 + k, bytes), bytes);
      return true;
    });
    rounds_.mark_taken(1 + k);
    return good;
  }

  bool run_other() {
    const Bytes own = call_.all(call_.input);
    const bool is_long = blocks_.is_long(own.size);
    if (!put_first(own, is_long)) return false;
    RootTable::Head head;
    RootTable::Entry mine;
    if (!blocks_.table().await(&head, &mine)) return false;
    if (mine.bytes != own.size) {
      return rounds_.disagree_about_own(call_.root, mine.bytes, own.size);
    }
    const bool puts = is_long && head.rounds == 0;
    if (puts) read_pages(own);
    if (puts && !put_at(rounds_, call_.root, mine.place, own)) return false;
    rounds_.mark_taken(1);
    for (uint64_t k = 1; k <= head.rounds; ++k) {
      const size_t bytes = is_long ? cut(own.size).size(k) : 0;
      if (bytes > 0 && !put_further(own.data + cut(own.size).begin(k), bytes, k)) return false;
      rounds_.mark_taken(1 + k);
    }
    rounds_.end(1 + head.rounds);
    return true;
  }
  bool put_first(const Bytes& own, bool is_long) {
    const uint64_t bytes = own.size;
    const size_t sent = is_long ? 0 : own.size;
    const size_t begin = begin_of_data(sizeof(bytes), sent);
    if (!rounds_.open(1, begin + sent)) return false;
    std::byte* const to = rounds_.data(rounds_.rank(), 1, begin + sent);
    std::memcpy(to, &bytes, sizeof(bytes));
    move_bytes(to + begin, own.data, sent);
    rounds_.publish(1, begin + sent);
    return true;
  }
  bool put_further(const std::byte* from, size_t bytes, uint64_t k) {
    if (!rounds_.open(1 + k, bytes)) return false;
    copy_bytes(rounds_.data(rounds_.rank(), 1 + k, bytes), from, bytes);
    rounds_.publish(1 + k, bytes);
    return true;
  }

  Rounds& rounds_;
  const ShmCall& call_;
  const LongBlocks way_;
  const size_t piece_;
  RaggedBlocks blocks_;
};

// Scatterv. In round 1 the root sends the short blocks. Others get long ones from its memory, or in
// further rounds, a piece each.
class ScatteringFromRoot {
 public:
  ScatteringFromRoot(Rounds& rounds, const ShmCall& call, LongBlocks way)
      : rounds_(rounds), call_(call), way_(way), blocks_(rounds, call, call.input) {}

  bool run() { return is_root(rounds_, call_) ? run_root() : run_other(); }

 private:
  Dealing deal(const RootTable::Head& head) const { return {rounds_, call_, head.longest, 1}; }

  bool run_root() {
    RootTable::Head head{.longest = blocks_.longest()};
    const Dealing dealing = deal(head);
    const bool gets = way_ == LongBlocks::by_cma && blocks_.pay_cma(head.longest);
    if (!gets) head.rounds = Cuts{head.longest, dealing.piece()}.count();
    if (!blocks_.publish(true, head)) return false;
    const Bytes own = call_.block(call_.input, call_.root);
    const OwnBlock block{call_.output.base, own, 2 * own.size * rounds_.size()};
    block.move_first();
    block.move_last();
    rounds_.mark_taken(1);
    const size_t longest_short = blocks_.table().room();
    for (uint64_t k = 1; k <= head.rounds; ++k) {
      if (!put_pieces(rounds_, call_, dealing, 1, k, dealing.room(), longest_short)) return false;
      rounds_.mark_taken(1 + k);
    }
    if (gets && head.longest > 0 && !rounds_.await_taken(1)) return false;
    rounds_.end(1 + head.rounds);
    return true;
  }

  bool run_other() {
    const Bytes own = call_.all(call_.output);
    RootTable::Head head;
    RootTable::Entry mine;
    const std::byte* const from = blocks_.table().await(&head, &mine);
    if (!from) return false;
    if (mine.bytes != own.size) return rounds_.disagree(call_.root, mine.bytes, own.size);
    const bool is_long = blocks_.is_long(own.size);
    if (!is_long) move_bytes(own.data, from + mine.place, own.size);
    if (is_long && head.rounds == 0 &&
        !rounds_.cma_get(call_.root, mine.place, own.data, own.size)) {
      return false;
    }
    rounds_.mark_taken(1);
    for (uint64_t k = 1; k <= head.rounds; ++k) {
      if (is_long && !get_further(own, deal(head), k)) return false;
      rounds_.mark_taken(1 + k);
    }
    rounds_.end(1 + head.rounds);
    return true;
  }
  bool get_further(const Bytes& own, const Dealing& dealing, uint64_t k) {
    if (!rounds_.await(call_.root, 1 + k, dealing.room())) return false;
    const Cuts pieces{own.size, dealing.piece()};
    move_bytes(own.data + pieces.begin(k), dealing.place(call_.root, rounds_.rank(), 1 + k),
               pieces.size(k));
    return true;
  }

  Rounds& rounds_;
  const ShmCall& call_;
  const LongBlocks way_;
  RaggedBlocks blocks_;
};

template <LongBlocks way>
bool run_gatherv(Rounds& rounds, const ShmCall& call) {
  return GatheringAtRoot(rounds, call, way).run();
}

template <LongBlocks way>
bool run_scatterv(Rounds& rounds, const ShmCall& call) {
  return ScatteringFromRoot(rounds, call, way).run();
}

constexpr const char gather_help[] = "shared memory; the root copies what all put there";
constexpr const char scatter_help[] = "shared memory; all copy what the root puts there";
constexpr const char cma_help[] = "shared memory, one copy of large blocks";

}  // namespace

constexpr Algorithm shm_gather = {
    .collective = Collective::gather,
    .name = "flat",
    .help = gather_help,
    .shm = run_gather,
    .round = RoundOf::block,
};

constexpr Algorithm shm_scatter = {
    .collective = Collective::scatter,
    .name = "flat",
    .help = scatter_help,
    .shm = run_scatter,
    .round = RoundOf::blocks_of_others,
};

constexpr Algorithm shm_gatherv = {
    .collective = Collective::gatherv,
    .name = "flat",
    .help = gather_help,
    .shm = run_gatherv<LongBlocks::in_rounds>,
    .slots = true,
};

constexpr Algorithm shm_scatterv = {
    .collective = Collective::scatterv,
    .name = "flat",
    .help = scatter_help,
    .shm = run_scatterv<LongBlocks::in_rounds>,
    .slots = true,
};

constexpr Algorithm shm_gatherv_cma = {
    .collective = Collective::gatherv,
    .name = "fetch",
    .help = cma_help,
    .needs = {.cma = true},
    .shm = run_gatherv<LongBlocks::by_cma>,
    .slots = true,
};

constexpr Algorithm shm_scatterv_cma = {
    .collective = Collective::scatterv,
    .name = "fetch",
    .help = cma_help,
    .needs = {.cma = true},
    .shm = run_scatterv<LongBlocks::by_cma>,
    .slots = true,
};

// (Blocks may lie at any distances in the root's memory, so that the root must tell.)
constexpr Algorithm shm_gather_cma = serving(Collective::gather, shm_gatherv_cma);
constexpr Algorithm shm_scatter_cma = serving(Collective::scatter, shm_scatterv_cma);

}  // namespace sluice
