// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/shm/slot_exchange.h"

#include "src/base/copy.h"

namespace sluice {
namespace {

bool run_barrier(Rounds& rounds, const ShmCall&) {
  if (!rounds.open(1, 0)) return false;
  rounds.publish(1, 0);
  if (!await_all(rounds, 1, 0)) return false;
  rounds.mark_taken(1);
  rounds.end(1);
  return true;
}

// Every rank copies the root's data out of its slots.
bool run_broadcast(Rounds& rounds, const ShmCall& call) {
  const Bytes data = call.all(call.output);
  const Cuts pieces{data.size, slot_piece(rounds, call)};
  for (uint64_t k = 1; k <= pieces.count(); ++k) {
    const size_t bytes = pieces.size(k);
    std::byte* const here = data.data + pieces.begin(k);
    std::byte* const there = rounds.data(call.root, k, bytes);
    if (rounds.rank() == call.root) {
      if (!rounds.open(k, bytes)) return false;
      copy_bytes(there, here, bytes);
      rounds.publish(k, bytes);
    } else {
      if (!rounds.await(call.root, k, bytes)) return false;
      copy_bytes(here, there, bytes);
    }
    rounds.mark_taken(k);
  }
  rounds.end(pieces.count());
  return true;
}

// Allgather: round k holds the k-th piece of each rank's block.
class Gathering {
 public:
  Gathering(Rounds& rounds, const ShmCall& call)
      : rounds_(rounds), call_(call), piece_(slot_piece(rounds, call)) {}

  bool run() {
    uint64_t last = 0;
    for (Rank rank = 0; rank < rounds_.size(); ++rank) {
      last = std::max(last, pieces(call_.block(call_.output, rank)).count());
    }
    for (uint64_t k = 0; k <= last; ++k) {
      if (k < last && !put(k + 1)) return false;
      if (k > 0 && !get(k)) return false;
    }
    rounds_.end(last);
    return true;
  }

 private:
  Cuts pieces(const Bytes& block) const { return {block.size, piece_}; }

  // Publishes a piece, and copies it into this rank's own result while it is in the cache.
  bool put(uint64_t k) {
    const Cuts cuts = pieces(own_);
    const std::byte* const from = own_.data + cuts.begin(k);
    const size_t bytes = cuts.size(k);
    if (!rounds_.open(k, bytes)) return false;
    move_bytes(rounds_.data(me_, k, bytes), from, bytes);
    rounds_.publish(k, bytes);
    move_bytes(call_.block(call_.output, me_).data + cuts.begin(k), from, bytes);
    return true;
  }
  bool get(uint64_t k) {
    for (Rank rank = 0; rank < rounds_.size(); ++rank) {
      if (rank == me_) continue;
      const Bytes block = call_.block(call_.output, rank);
      const Cuts cuts = pieces(block);
      const size_t bytes = cuts.size(k);
      if (!rounds_.await(rank, k, bytes)) return false;
      move_bytes(block.data + cuts.begin(k), rounds_.data(rank, k, bytes), bytes);
    }
    rounds_.mark_taken(k);
    return true;
  }

  Rounds& rounds_;
  const ShmCall& call_;
  const size_t piece_;
  const Rank me_ = rounds_.rank();
  const Bytes own_ = call_.all(call_.input);
};

// Also allgatherv.
bool run_allgather(Rounds& rounds, const ShmCall& call) { return Gathering(rounds, call).run(); }

bool run_alltoall(Rounds& rounds, const ShmCall& call) {
  const size_t block = call.block(call.input, 0).size;
  SlotExchange exchange(rounds, call, 0, block, block, {});
  const uint64_t length = exchange.length();
  move_own_block(rounds, call);
  if (!exchange.run(length)) return false;
  rounds.end(length);
  return true;
}

// Ranks first exchange how many rounds each needs.
bool run_alltoallv(Rounds& rounds, const ShmCall& call) {
  SlotExchange exchange(rounds, call, 1, 0, ArenaSlot::capacity, {});
  uint64_t length = 0;
  const auto hear = [&](Rank, uint64_t theirs) { length = std::max(length, theirs); };
  if (!rounds.exchange(1, exchange.length(), hear)) return false;
  move_own_block(rounds, call);
  if (!exchange.run(length)) return false;
  rounds.end(1 + length);
  return true;
}

}  // namespace

constexpr Algorithm shm_barrier = {
    .collective = Collective::barrier,
    .name = "flat",
    .help = "shared memory; every rank polls every other rank's flag",
    .shm = run_barrier,
};

constexpr Algorithm shm_broadcast = {
    .collective = Collective::broadcast,
    .name = "flat",
    .help = "shared memory; all copy what the root puts there",
    .shm = run_broadcast,
};

constexpr Algorithm shm_allgather = {
    .collective = Collective::allgather,
    .name = "flat",
    .help = "shared memory; every rank copies all ranks' blocks",
    .shm = run_allgather,
    .round = RoundOf::block,
};

constexpr Algorithm shm_allgatherv = serving(Collective::allgatherv, shm_allgather);

constexpr Algorithm shm_alltoall = {
    .collective = Collective::alltoall,
    .name = "flat",
    .help = "shared memory; every rank copies its block of each rank's",
    .shm = run_alltoall,
    .round = RoundOf::blocks_of_others,
};

constexpr Algorithm shm_alltoallv = {
    .collective = Collective::alltoallv,
    .name = "flat",
    .help = "shared memory; every rank copies its block of each rank's",
    .shm = run_alltoallv,
    .slots = true,
};

}  // namespace sluice
