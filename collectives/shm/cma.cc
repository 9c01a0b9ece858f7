// SPDX-License-Identifier: BSD-3-Clause
//
// Single copy by the kernel (CMA), after Jin, Sur, Chai and Panda, "LiMIC: Support for
// High-Performance MPI Intra-node Communication on Linux Cluster" (2005), and Ma, Bosilca,
// Bouteiller and Dongarra, "Kernel-assisted and topology-aware MPI collective communications on
// multicore/many-core platforms" (2013).
#include "collectives/shm/block_table.h"
#include "collectives/shm/published_buffers.h"
#include "collectives/shm/slot_exchange.h"

namespace sluice {
namespace {

// Combines all ranks' operands in rank order, piece by piece, and gets remote ones by CMA. A
// piece of the result is handed on while it is in the cache.
class Combining {
 public:
  Combining(Rounds& rounds, const ShmCall& call, PublishedBuffers& buffers)
      : rounds_(rounds), call_(call), buffers_(buffers) {}

  // Combines a stretch of every operand from `offset` on; `own` is this rank's. out: the result,
  // which may be `own`; null: each piece of the result goes to scratch. hand_on(offset, piece of
  // the result): false if it failed.
  template <typename HandOn>
  bool combine(size_t offset, const Bytes& own, std::byte* out, const HandOn& hand_on) {
    const Cuts cuts{own.size, whole_elements(ShmCall::scratch_piece, call_.element)};
    for (uint64_t k = 1; k <= cuts.count(); ++k) {
      const size_t at = cuts.begin(k);
      const Bytes piece{out ? out + at : aside(0, 0, offset + at), cuts.size(k)};
      if (!combine_piece(offset + at, own.data + at, piece)) return false;
      if (!hand_on(offset + at, piece)) return false;
    }
    return true;
  }

 private:
  // Where in this half of the scratch to get that rank's operand from `offset` on: at the same
  // page offset, so that the copy is fast.
  std::byte* aside(size_t half, Rank rank, size_t offset) {
    return place_like(call_.scratch.data() + half * ShmCall::scratch_half,
                      buffers_.address(rank) + offset);
  }
  bool combine_piece(size_t offset, const std::byte* own, const Bytes& out) {
    std::byte* const sum = aside(0, 0, offset);
    const Rank me = rounds_.rank(), last = rounds_.size() - 1;
    const std::byte* left = own;
    if (me != 0) {
      if (!buffers_.cma_get(0, offset, {sum, out.size})) return false;
      left = sum;
    }
    for (Rank rank = 1; rank <= last; ++rank) {
      const std::byte* right = own;
      if (rank != me) {
        std::byte* const next = aside(1, rank, offset);
        if (!buffers_.cma_get(rank, offset, {next, out.size})) return false;
        right = next;
      }
      std::byte* const to = rank == last ? out.data : sum;
      call_.combine(left, right, to, out.size);
      left = to;
    }
    return true;
  }

  Rounds& rounds_;
  const ShmCall& call_;
  PublishedBuffers& buffers_;
};

bool keep(size_t, const Bytes&) { return true; }

// A broadcast with one copy (CMA): ranks publish the addresses of their data, then get or put it. A
// rank leaves when no other rank needs its memory any more. If the kernel can't copy some rank's
// memory, the call uses the slots. With two ranks, the root puts the first half into the other's
// memory, which gets the rest; otherwise the root would be idle. (More ranks may be oversubscribed:
// there the root waits for no rank before all have their data.)
bool run_broadcast_cma(Rounds& rounds, const ShmCall& call) {
  const Bytes data = call.all(call.output);
  const Bytes half = share(data.data, data.size, call.element, 0, 2);
  const bool is_shared = rounds.size() == 2, is_root = rounds.rank() == call.root;
  PublishedBuffers buffers(rounds);
  if ((is_root || is_shared) && !buffers.publish(data, is_root ? Bytes{} : half)) return false;
  const Rank other = 1 - std::min(call.root, Rank{1});
  if (is_root ? is_shared && !buffers.learn(other, data.size)
              : !buffers.learn(call.root, data.size)) {
    return false;
  }
  if (!buffers.all_in_reach()) return buffers.go_by(shm_broadcast, call);
  if (is_root) {
    if (is_shared && !buffers.put(other, 0, half)) return false;
    return buffers.end_with_all();
  }
  const size_t from = is_shared ? half.size : 0;
  const Bytes rest{data.data + from, data.size - from};
  if (!buffers.cma_get(call.root, from, rest)) return false;
  return is_shared ? buffers.end_with_all() : buffers.end_alone();
}

bool run_allgather_cma(Rounds& rounds, const ShmCall& call) {
  const Rank me = rounds.rank(), ranks = rounds.size();
  const Bytes own = call.all(call.input);
  PublishedBuffers buffers(rounds);
  const OwnBlock block{call.block(call.output, me).data, own, (1 + ranks) * own.size * ranks};
  if (!buffers.publish(own)) return false;
  block.move_first();
  for (Rank step = 1; step < ranks; ++step) {  // not all from the same rank at once
    const Rank rank = (me + step) % ranks;
    const Bytes to = call.block(call.output, rank);
    if (!buffers.learn(rank, to.size)) return false;
    if (buffers.all_in_reach() && !buffers.cma_get(rank, 0, to)) return false;
  }
  if (!buffers.all_in_reach()) return buffers.go_by(shm_allgather, call);
  block.move_last();
  return buffers.end_with_all();
}

// The number in a rank's table is how many further rounds its medium blocks need, or out_of_reach
// if the kernel can't copy some of its long ones.
class CmaExchange {
 public:
  CmaExchange(Rounds& rounds, const ShmCall& call)
      : rounds_(rounds),
        call_(call),
        table_(rounds, call),
        medium_(rounds, call, 1, 0, longest_medium, {table_.room() + 1, medium()}) {}

  bool run() {
    bool has_long = false;
    const bool is_in_reach = find_long_blocks(&has_long);
    if (!table_.put(is_in_reach ? medium_.length() : out_of_reach)) return false;
    const Bytes own = call_.block(call_.input, me_);
    const OwnBlock block{call_.block(call_.output, me_).data, own, 2 * ranks_ * own.size * ranks_};
    block.move_first();
    for (Rank step = 1; step < ranks_; ++step) {  // not all from the same rank at once
      if (!get_from((me_ + step) % ranks_)) return false;
    }
    rounds_.mark_taken(1);
    // If so, repeats the exchange. Its first round waits for all ranks, as some may still be
    // copying.
    if (table_.largest() == out_of_reach) {
      rounds_.end(1);
      return shm_alltoallv.shm(rounds_, call_);
    }
    if (!medium_.run(table_.largest())) return false;
    block.move_last();
    if (has_long && !rounds_.await_taken(1)) return false;
    rounds_.end(1 + table_.largest());
    return true;
  }

 private:
  static constexpr uint64_t out_of_reach = ~uint64_t{0};
  static constexpr size_t longest_medium = size_t{64} << 10;
  static constexpr size_t widest_gap = size_t{16} << 10;
  static constexpr size_t most_rounds = 8;
  static constexpr Rank most_with_medium = 16;

  // The most bytes of a medium block: it takes all ranks a few rounds. 0 unless oversubscribed;
  // also for two ranks, which use CMA, and for many, most of which may have nothing for each other.
  size_t medium() const {
    if (!call_.in_turns || ranks_ == 2 || ranks_ > most_with_medium) return 0;
    return std::min(longest_medium, most_rounds * ArenaSlot::capacity / ranks_);
  }
  bool is_long(size_t bytes) const { return bytes > std::max(table_.room(), medium()); }

  // Whether the kernel can copy this rank's long blocks. Blocks that lie close together are checked
  // as one run.
  bool find_long_blocks(bool* has_long) const {
    uint64_t begin = 0, end = 0;
    const auto reaches_run = [&] {
      return begin == end ||
             rounds_.cma()->is_in_reach(reinterpret_cast<const std::byte*>(begin), end - begin);
    };
    bool good = true;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      const Bytes block = call_.block(call_.input, rank);
      if (rank == me_ || !is_long(block.size)) continue;
      *has_long = true;
      const uint64_t at = address_of(block.data);
      if (at < end || at - end > widest_gap) {
        good = good && reaches_run();
        begin = at;
      }
      end = at + block.size;
    }
    return good && reaches_run();
  }
  // Receives that rank's block as soon as its table is there, however late other ranks are.
  bool get_from(Rank rank) {
    uint64_t address = 0;
    if (!table_.get(rank, &address)) return false;
    const Bytes to = call_.block(call_.output, rank);
    return !is_long(to.size) || table_.largest() == out_of_reach ||
           rounds_.cma_get(rank, address, to.data, to.size);
  }

  Rounds& rounds_;
  const ShmCall& call_;
  const Rank me_ = rounds_.rank(), ranks_ = rounds_.size();
  BlockTable table_;
  SlotExchange medium_;
};

// Also alltoall. Short blocks use the slots all the same. If ranks are oversubscribed, so do medium
// ones: there a CMA copy that waits for the other rank's memory costs a scheduling turn.
bool run_alltoallv_cma(Rounds& rounds, const ShmCall& call) {
  return CmaExchange(rounds, call).run();
}

// Every rank combines its share and puts it into the root's memory.
bool run_reduce_cma(Rounds& rounds, const ShmCall& call) {
  const Rank me = rounds.rank();
  const bool is_root = me == call.root;
  const Bytes input = call.all(call.input);
  const Bytes own = share(input.data, input.size, call.element, me, rounds.size());
  const auto before = static_cast<size_t>(own.data - input.data);
  std::byte* const output = is_root ? call.output.base : nullptr;
  PublishedBuffers buffers(rounds);
  if (!buffers.publish(input, is_root ? Bytes{output, input.size} : Bytes{}) ||
      !buffers.learn_all(input.size))
    return false;
  if (!buffers.all_in_reach()) return buffers.go_by(shm_reduce_split, call);
  const auto hand_on = [&](size_t offset, const Bytes& piece) {
    return is_root || buffers.put_result(call.root, offset, piece);
  };
  return Combining(rounds, call, buffers)
             .combine(before, own, is_root ? output + before : nullptr, hand_on) &&
         buffers.end_with_all();
}

bool run_reduce_scatter_cma(Rounds& rounds, const ShmCall& call) {
  const Bytes own = call.block(call.input, rounds.rank());
  const auto before = static_cast<size_t>(own.data - call.input.base);
  PublishedBuffers buffers(rounds);
  size_t total = 0;
  for (Rank rank = 0; rank < rounds.size(); ++rank) total += call.block(call.input, rank).size;
  if (!buffers.publish({call.input.base, total}) || !buffers.learn_all(total)) return false;
  if (!buffers.all_in_reach()) return buffers.go_by(shm_reduce_scatter, call);
  return Combining(rounds, call, buffers).combine(before, own, call.output.base, keep) &&
         buffers.end_with_all();
}

// Every rank combines its share and puts it into every rank's output. (In place: a share is
// overwritten only by the rank that combines it, which has read it by then.)
bool run_allreduce_cma(Rounds& rounds, const ShmCall& call) {
  const Rank me = rounds.rank(), ranks = rounds.size();
  const Bytes input = call.all(call.input);
  std::byte* const output = call.output.base;
  const Bytes own = share(input.data, input.size, call.element, me, ranks);
  const auto before = static_cast<size_t>(own.data - input.data);
  PublishedBuffers buffers(rounds);
  if (!buffers.publish(input, {output, input.size}) || !buffers.learn_all(input.size)) return false;
  if (!buffers.all_in_reach()) return buffers.go_by(shm_allreduce_split, call);
  const auto hand_on = [&](size_t offset, const Bytes& piece) {
    for (Rank step = 1; step < ranks; ++step) {
      if (!buffers.put_result((me + step) % ranks, offset, piece)) return false;
    }
    return true;
  };
  return Combining(rounds, call, buffers).combine(before, own, output + before, hand_on) &&
         buffers.end_with_all();
}

}  // namespace

constexpr Algorithm shm_broadcast_cma = {
    .collective = Collective::broadcast,
    .name = "fetch",
    .help = "shared memory, one copy: large messages",
    .needs = {.cma = true},
    .shm = run_broadcast_cma,
    .slots = true,
};

constexpr Algorithm shm_allgather_cma = {
    .collective = Collective::allgather,
    .name = "fetch",
    .help = "shared memory, one copy: large messages",
    .needs = {.cma = true},
    .shm = run_allgather_cma,
    .slots = true,
};

constexpr Algorithm shm_allgatherv_cma = serving(Collective::allgatherv, shm_allgather_cma);

constexpr Algorithm shm_alltoallv_cma = {
    .collective = Collective::alltoallv,
    .name = "fetch",
    .help = "shared memory, one copy of large blocks",
    .needs = {.cma = true},
    .shm = run_alltoallv_cma,
    .slots = true,
};

constexpr Algorithm shm_alltoall_cma = serving(Collective::alltoall, shm_alltoallv_cma);

constexpr Algorithm shm_reduce_cma = {
    .collective = Collective::reduce,
    .name = "fetch",
    .help = "shared memory, one copy; every rank combines a share: large messages",
    .needs = {.cma = true},
    .bracketing = Bracketing::left,
    .shm = run_reduce_cma,
    .slots = true,
};

constexpr Algorithm shm_reduce_scatter_cma = {
    .collective = Collective::reduce_scatter,
    .name = "fetch",
    .help = "shared memory, one copy: large messages",
    .needs = {.cma = true},
    .bracketing = Bracketing::left,
    .shm = run_reduce_scatter_cma,
    .slots = true,
};

constexpr Algorithm shm_allreduce_cma = {
    .collective = Collective::allreduce,
    .name = "fetch",
    .help = "shared memory, one copy; every rank combines a share: large messages",
    .needs = {.cma = true},
    .bracketing = Bracketing::left,
    .shm = run_allreduce_cma,
    .slots = true,
};

}  // namespace sluice
