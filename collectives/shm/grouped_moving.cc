// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/shm/grouped.h"

#include "src/base/copy.h"

namespace sluice {
namespace {

// A barrier in groups (groups.h). A rank publishes round 1 when it has entered, a leader when its
// whole group has. Leaders publish round 2 when all ranks have entered.
bool run_barrier_grouped(Rounds& rounds, const ShmCall& call) {
  const Grouped grouped(rounds, call, 0);
  if (grouped.leads() && !grouped.await_followers(1, 0)) return false;
  if (!rounds.open(1, 0)) return false;
  rounds.publish(1, 0);
  if (!grouped.leads()) {
    if (!grouped.await_leader(1, 0, 2, 0)) return false;
  } else {
    if (!grouped.await_leaders(1, 0) || !rounds.open(2, 0)) return false;
    rounds.publish(2, 0);
  }
  rounds.mark_taken(2);
  rounds.end(2);
  return true;
}

// Leaders copy the root's data into their own slots, from which their groups copy it.
bool run_broadcast_grouped(Rounds& rounds, const ShmCall& call) {
  const Grouped grouped(rounds, call, call.root);
  const Bytes data = call.all(call.output);
  const Cuts pieces{data.size, ArenaSlot::capacity};
  const Rank me = rounds.rank();
  const bool publishes = me == call.root || (grouped.leads() && grouped.has_followers());
  const Rank source = grouped.leads() ? call.root : grouped.leader();
  for (uint64_t k = 1; k <= pieces.count(); ++k) {
    const size_t bytes = pieces.size(k);
    std::byte* const here = data.data + pieces.begin(k);
    const std::byte* from = me == call.root ? here : rounds.data(source, k, bytes);
    if (me != call.root && !rounds.await(source, k, bytes)) return false;
    if (publishes) {
      if (!rounds.open(k, bytes)) return false;
      std::byte* const own = rounds.data(me, k, bytes);
      copy_bytes(own, from, bytes);
      rounds.publish(k, bytes);
      from = own;
    }
    if (me != call.root) copy_bytes(here, from, bytes);
    rounds.mark_taken(k);
  }
  rounds.end(pieces.count());
  return true;
}

// The k-th piece of every rank's block takes rounds 2k - 1 and 2k. In the first, a follower
// publishes its piece, and a leader the pieces of its group, one after the other at equal
// distances. In the second, a leader publishes the pieces of all groups, in their order.
class GroupedGathering {
 public:
  GroupedGathering(Rounds& rounds, const ShmCall& call)
      : rounds_(rounds), call_(call), grouped_(rounds, call, 0) {
    for (Rank rank = 0; rank < rounds.size(); ++rank) {
      longest_ = std::max(longest_, call.block(call.output, rank).size);
    }
    piece_ = std::max(std::min(longest_, ArenaSlot::capacity / rounds.size()), size_t{1});
  }

  bool run() {
    const uint64_t last = Cuts{longest_, piece_}.count();
    for (uint64_t k = 1; k <= last; ++k) {
      if (!(grouped_.leads() ? lead(k) : follow(k))) return false;
      rounds_.mark_taken(2 * k);
    }
    rounds_.end(2 * last);
    return true;
  }

 private:
  size_t room(uint32_t group) const { return groups().members(group).size() * piece_; }
  size_t room() const { return rounds_.size() * piece_; }
  const Groups& groups() const { return grouped_.groups(); }
  Bytes piece_of(const Bytes& block, uint64_t k) const {
    const Cuts cuts{block.size, piece_};
    return {block.data + cuts.begin(k), cuts.size(k)};
  }
  Bytes own_piece(uint64_t k) const { return piece_of(call_.all(call_.input), k); }
  Bytes result_piece(Rank rank, uint64_t k) const {
    return piece_of(call_.block(call_.output, rank), k);
  }

  bool follow(uint64_t k) {
    const Bytes own = own_piece(k);
    if (!rounds_.open(2 * k - 1, own.size)) return false;
    move_bytes(rounds_.data(rounds_.rank(), 2 * k - 1, own.size), own.data, own.size);
    rounds_.publish(2 * k - 1, own.size);
    const Rank leader = grouped_.leader();
    if (!grouped_.await_leader(2 * k - 1, room(groups().own()), 2 * k, room())) return false;
    const std::byte* from = rounds_.data(leader, 2 * k, room());
    for (uint32_t group = 0; group < groups().count(); ++group) {
      hand_out(group, k, from);
      from += room(group);
    }
    return true;
  }

  bool lead(uint64_t k) {
    if (!collect(k)) return false;
    std::byte* to = rounds_.data(rounds_.rank(), 2 * k, room());
    if (grouped_.has_followers() && !rounds_.open(2 * k, room())) return false;
    for (uint32_t group = 0; group < groups().count(); ++group) {
      const Rank leader = grouped_.leader(group);
      if (leader != rounds_.rank() && !rounds_.await(leader, 2 * k - 1, room(group))) return false;
      const std::byte* const from = rounds_.data(leader, 2 * k - 1, room(group));
      if (grouped_.has_followers()) copy_bytes(to, from, room(group));
      hand_out(group, k, from);
      to += room(group);
    }
    if (grouped_.has_followers()) rounds_.publish(2 * k, room());
    return true;
  }
  // The group's own.
  bool collect(uint64_t k) {
    const size_t bytes = room(groups().own());
    if (!rounds_.open(2 * k - 1, bytes)) return false;
    std::byte* to = rounds_.data(rounds_.rank(), 2 * k - 1, bytes);
    for (const Rank rank : groups().here()) {
      const bool is_own = rank == rounds_.rank();
      const size_t size = is_own ? own_piece(k).size : result_piece(rank, k).size;
      if (!is_own && !rounds_.await(rank, 2 * k - 1, size)) return false;
      move_bytes(to, is_own ? own_piece(k).data : rounds_.data(rank, 2 * k - 1, size), size);
      to += piece_;
    }
    rounds_.publish(2 * k - 1, bytes);
    return true;
  }
  // Into the result.
  void hand_out(uint32_t group, uint64_t k, const std::byte* from) const {
    for (const Rank rank : groups().members(group)) {
      const Bytes to = result_piece(rank, k);
      move_bytes(to.data, from, to.size);
      from += piece_;
    }
  }

  Rounds& rounds_;
  const ShmCall& call_;
  const Grouped grouped_;
  size_t longest_ = 0, piece_ = 1;
};

// Leaders collect their groups' blocks, then all groups', then hand these out. Also allgatherv.
bool run_allgather_grouped(Rounds& rounds, const ShmCall& call) {
  return GroupedGathering(rounds, call).run();
}

}  // namespace

constexpr Algorithm shm_barrier_grouped = {
    .collective = Collective::barrier,
    .name = "grouped",
    .help = "shared memory; inside groups, then between their leaders: many ranks",
    .needs = {.groups = true},
    .shm = run_barrier_grouped,
};

constexpr Algorithm shm_broadcast_grouped = {
    .collective = Collective::broadcast,
    .name = "grouped",
    .help = "shared memory; to the leaders of groups, then to all: small messages",
    .needs = {.groups = true},
    .shm = run_broadcast_grouped,
};

constexpr Algorithm shm_allgather_grouped = {
    .collective = Collective::allgather,
    .name = "grouped",
    .help = "shared memory; inside groups, between their leaders, to all: small blocks",
    .needs = {.groups = true},
    .shm = run_allgather_grouped,
    .round = RoundOf::group,
};

constexpr Algorithm shm_allgatherv_grouped = serving(Collective::allgatherv, shm_allgather_grouped);

}  // namespace sluice
