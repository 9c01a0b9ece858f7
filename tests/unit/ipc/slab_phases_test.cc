// SPDX-License-Identifier: BSD-3-Clause
//
// Runs all ranks' phases on ordinary memory, the works of one phase in random order.
#include "src/ipc/slab_phases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sluice {
namespace {

using Bytes = std::vector<std::byte>;
using SlabMemory = SlabWork::Memory;

// Neither commutative nor associative.
std::byte combine(std::byte left, std::byte right) {
  return static_cast<std::byte>(
      (std::to_integer<int>(left) * 31 + std::to_integer<int>(right) * 7 + 1) % 251);
}

struct SlabCase {
  Collective collective;
  Rank ranks, root;
  size_t element, slab;
  std::vector<size_t> counts;  // elements of each block; one: of all
  bool in_place;
};

struct SimulatedRank {
  Call call;
  Bytes input, output, slab;  // in place the input is in the output's memory
  std::vector<size_t> offsets;
};

// A run of memory that a work reads or writes.
struct Access {
  const std::byte *begin, *end;
  bool writes;
  bool clashes(const Access& other) const {
    return (writes || other.writes) && begin < other.end && other.begin < end;
  }
};

class Simulation {
 public:
  Simulation(SlabCase which, std::mt19937& random) : case_(std::move(which)), random_(random) {
    for (Rank rank = 0; rank < case_.ranks; ++rank) all_.push_back(make(rank));
    before_ = all_;
    for (Rank rank = 0; rank < case_.ranks; ++rank) {
      place(rank, all_[rank]);
      place(rank, before_[rank]);
    }
  }

  void run() {
    std::vector<SlabPhases> phases;
    for (Rank rank = 0; rank < case_.ranks; ++rank) {
      phases.emplace_back(all_[rank].call, rank, case_.ranks, case_.slab);
      ASSERT_EQ(phases[rank].count(), phases[0].count());
    }
    for (size_t phase = 0; phase < phases[0].count(); ++phase) {
      std::vector<std::pair<Rank, SlabWork>> works;
      for (Rank rank = 0; rank < case_.ranks; ++rank) {
        std::vector<SlabWork> own;
        phases[rank].list(phase, &own);
        for (const SlabWork& work : own) works.emplace_back(rank, work);
      }
      expect_independent(works, phase);
      std::ranges::shuffle(works, random_);
      for (const auto& [rank, work] : works) perform(rank, work);
    }
    for (Rank rank = 0; rank < case_.ranks; ++rank) {
      EXPECT_TRUE(all_[rank].output == expected(rank)) << name() << " on rank " << rank;
    }
  }

 private:
  bool is(Collective collective) const { return case_.collective == collective; }
  bool gathers() const { return is(Collective::allgather) || is(Collective::allgatherv); }
  bool is_uniform() const { return case_.counts.size() == 1; }
  size_t count(Rank block) const { return case_.counts[is_uniform() ? 0 : block]; }
  size_t bytes(Rank block) const { return count(block) * case_.element; }
  size_t before(Rank block) const {
    size_t sum = 0;
    for (Rank i = 0; i < block; ++i) sum += bytes(i);
    return sum;
  }
  size_t all_blocks() const { return before(case_.ranks); }
  std::string name() const {
    return std::string(to_string(case_.collective)) + " of " + std::to_string(case_.ranks) +
           (case_.in_place ? " in place" : "") + ", slab " + std::to_string(case_.slab) +
           ", first block " + std::to_string(case_.counts[0]) + ", element " +
           std::to_string(case_.element);
  }

  Bytes filled(size_t size) {
    Bytes made(size);
    for (std::byte& each : made) each = static_cast<std::byte>(random_() % 251);
    return made;
  }

  SimulatedRank make(Rank rank) {
    SimulatedRank made;
    made.slab = filled(case_.slab);
    const bool blocks_in = is(Collective::alltoall) || is(Collective::reduce_scatter);
    const bool blocks_out = is(Collective::alltoall) || gathers();
    const size_t in = blocks_in ? all_blocks() : gathers() ? bytes(rank) : bytes(0);
    const size_t out = blocks_out                                     ? all_blocks()
                       : is(Collective::reduce_scatter)               ? bytes(rank)
                       : is(Collective::reduce) && rank != case_.root ? 0
                                                                      : bytes(0);
    const bool in_place = case_.in_place && out > 0;
    made.input = in_place || is(Collective::broadcast) ? Bytes() : filled(in);
    made.output = filled(in_place ? std::max(in, out) : out);
    return made;
  }

  void place(Rank rank, SimulatedRank& each) const {
    Call& call = each.call;
    call.collective = case_.collective;
    call.root = case_.root;
    call.element = case_.element;
    call.output.base = each.output.data();
    call.input.base = !each.input.empty() ? each.input.data()
                      : gathers()         ? each.output.data() + before(rank)
                                          : each.output.data();
    call.input.count = call.output.count = count(0);
    if (is_uniform()) return;
    each.offsets.clear();
    for (Rank i = 0; i < case_.ranks; ++i) each.offsets.push_back(before(i) / case_.element);
    View& ragged = gathers() ? call.output : call.input;
    View& own = gathers() ? call.input : call.output;
    ragged.counts = case_.counts;
    ragged.offsets = each.offsets;
    own.count = count(rank);
  }

  std::byte* address(Rank rank, const SlabWork::Spot& spot) {
    switch (spot.memory) {
      case SlabMemory::input:
        return all_[rank].call.input.base + spot.at;
      case SlabMemory::output:
        return all_[rank].call.output.base + spot.at;
      default:
        return all_[spot.rank].slab.data() + spot.at;
    }
  }

  void perform(Rank rank, const SlabWork& work) {
    std::byte* const to = address(rank, work.to);
    if (work.kind == SlabWork::Kind::copy) {
      std::memmove(to, address(rank, work.from), work.bytes);
      return;
    }
    Bytes sum(all_[0].slab.begin() + static_cast<ptrdiff_t>(work.from.at),
              all_[0].slab.begin() + static_cast<ptrdiff_t>(work.from.at + work.bytes));
    for (Rank other = 1; other < case_.ranks; ++other) {
      for (size_t i = 0; i < work.bytes; ++i) {
        sum[i] = combine(sum[i], all_[other].slab[work.from.at + i]);
      }
    }
    std::ranges::copy(sum, to);
  }

  // Within one phase there is no order, and nobody writes to others' slabs, or beyond a slab.
  void expect_independent(const std::vector<std::pair<Rank, SlabWork>>& works, size_t phase) {
    std::vector<std::vector<Access>> accesses;
    for (const auto& [rank, work] : works) {
      std::vector<Access> one;
      const bool copies = work.kind == SlabWork::Kind::copy;
      for (Rank other = 0; other < (copies ? 1 : case_.ranks); ++other) {
        const std::byte* const from =
            copies ? address(rank, work.from) : all_[other].slab.data() + work.from.at;
        if (from != address(rank, work.to)) one.push_back({from, from + work.bytes, false});
      }
      const std::byte* const to = address(rank, work.to);
      one.push_back({to, to + work.bytes, true});
      ASSERT_TRUE(work.to.memory != SlabMemory::slab || work.to.rank == rank);
      for (const auto& spot : {work.from, work.to}) {
        ASSERT_TRUE(spot.memory != SlabMemory::slab || spot.at + work.bytes <= case_.slab);
      }
      const bool is_no_work = copies && address(rank, work.from) == to;
      if (!is_no_work) accesses.push_back(one);
    }
    for (size_t i = 0; i < accesses.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        for (const Access& one : accesses[i]) {
          for (const Access& other : accesses[j]) {
            ASSERT_FALSE(one.clashes(other)) << name() << " in phase " << phase;
          }
        }
      }
    }
  }

  const std::byte* input(Rank rank, size_t at) const { return before_[rank].call.input.base + at; }
  Bytes reduced(size_t at, size_t size) const {
    Bytes sum(input(0, at), input(0, at) + size);
    for (Rank rank = 1; rank < case_.ranks; ++rank) {
      for (size_t i = 0; i < size; ++i) sum[i] = combine(sum[i], *input(rank, at + i));
    }
    return sum;
  }

  // (In place, memory behind a result of reduce_scatter is left alone.)
  Bytes expected(Rank rank) const {
    Bytes output = before_[rank].output;
    const auto put = [&](size_t at, const Bytes& part) {
      std::ranges::copy(part, output.begin() + static_cast<ptrdiff_t>(at));
    };
    const auto part = [&](Rank from, size_t at, size_t size) {
      return Bytes(input(from, at), input(from, at) + size);
    };
    switch (case_.collective) {
      case Collective::broadcast:
        put(0, before_[case_.root].output);
        break;
      case Collective::allgather:
      case Collective::allgatherv:
        for (Rank from = 0; from < case_.ranks; ++from)
          put(before(from), part(from, 0, bytes(from)));
        break;
      case Collective::alltoall:
        for (Rank from = 0; from < case_.ranks; ++from) {
          put(before(from), part(from, before(rank), bytes(rank)));
        }
        break;
      case Collective::reduce_scatter:
        put(0, reduced(before(rank), bytes(rank)));
        break;
      default:
        if (!output.empty()) put(0, reduced(0, bytes(0)));
    }
    return output;
  }

  const SlabCase case_;
  std::mt19937& random_;
  std::vector<SimulatedRank> all_, before_;
};

TEST(SlabPhases, do_every_collective) {
  std::mt19937 random(20240517);
  const Collective collectives[] = {
      Collective::broadcast, Collective::allgather, Collective::allgatherv,    Collective::alltoall,
      Collective::allreduce, Collective::reduce,    Collective::reduce_scatter};
  for (int round = 0; round < 300; ++round) {
    for (const Collective collective : collectives) {
      SlabCase one{collective, 0, 0, 1, 0, {}, false};
      one.ranks = 2 + static_cast<Rank>(random() % 5);
      one.root = static_cast<Rank>(random() % one.ranks);
      one.in_place = random() % 2 == 0 && collective != Collective::broadcast;
      const bool reduces = collective == Collective::allreduce ||
                           collective == Collective::reduce ||
                           collective == Collective::reduce_scatter;
      one.element = reduces ? size_t{1} << random() % 4 : 1;
      if (reduces && random() % 4 == 0) one.element = 12;
      one.slab = 64 * one.element * one.ranks + random() % 6000;
      const bool is_ragged = collective == Collective::allgatherv ||
                             (collective == Collective::reduce_scatter && random() % 2 == 0);
      const size_t most = random() % 2 == 0 ? 40 : 3000;
      for (Rank i = 0; i < (is_ragged ? one.ranks : 1); ++i) {
        one.counts.push_back(is_ragged && random() % 4 == 0 ? 0 : 1 + random() % most);
      }
      Simulation(one, random).run();
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

// An alltoallv in which each rank sends others as many bytes as it likes; in place, as many as it
// gets.
class Alltoallv {
 public:
  Alltoallv(Rank ranks, size_t slab, bool in_place, std::mt19937& random)
      : ranks_(ranks), slab_(slab), in_place_(in_place), random_(random), all_(ranks) {
    draw_counts();
    for (Rank rank = 0; rank < ranks; ++rank) make(rank, &all_[rank]);
    before_ = all_;
    for (Sides& own : all_) {
      own.call.input.base = own.input.data();
      own.call.output.base = in_place ? own.input.data() : own.output.data();
    }
  }

  void run() {
    const size_t phases = SlabPhases(all_[0].call, 0, ranks_, slab_, longest_).count();
    for (size_t phase = 0; phase < phases; ++phase) {
      std::vector<std::pair<Rank, SlabWork>> works;
      for (Rank rank = 0; rank < ranks_; ++rank) {
        std::vector<SlabWork> own;
        SlabPhases(all_[rank].call, rank, ranks_, slab_, longest_).list(phase, &own);
        for (const SlabWork& work : own) works.emplace_back(rank, work);
      }
      std::ranges::shuffle(works, random_);
      for (const auto& [rank, work] : works) {
        ASSERT_TRUE(work.to.memory != SlabMemory::slab || work.to.rank == rank);
        std::memmove(address(rank, work.to), address(rank, work.from), work.bytes);
      }
    }
    for (Rank rank = 0; rank < ranks_; ++rank) {
      for (Rank from = 0; from < ranks_; ++from) {
        const std::byte* const sent = before_[from].input.data() + before_[from].sent_at[rank];
        const std::byte* const got = all_[rank].call.output.base + all_[rank].received_at[from];
        EXPECT_TRUE(std::equal(sent, sent + counts_[from][rank], got)) << from << " to " << rank;
      }
    }
  }

 private:
  struct Sides {
    Bytes input, output, slab;
    std::vector<size_t> sent, sent_at, received, received_at;
    Call call;
  };

  void draw_counts() {
    counts_.assign(ranks_, std::vector<size_t>(ranks_));
    for (Rank from = 0; from < ranks_; ++from) {
      for (Rank to = 0; to < ranks_; ++to) {
        const size_t drawn = random_() % 3 == 0 ? 0 : random_() % 3000;
        counts_[from][to] = in_place_ && to < from ? counts_[to][from] : drawn;
        longest_ = std::max(longest_, counts_[from][to]);
      }
    }
  }

  // With gaps. Returns the end.
  size_t lay_out(const std::vector<size_t>& sizes, std::vector<size_t>* at) {
    size_t end = 0;
    for (const size_t size : sizes) {
      at->push_back(end);
      end += size + random_() % 3;
    }
    return end;
  }

  void make(Rank rank, Sides* own) {
    for (Rank other = 0; other < ranks_; ++other) {
      own->sent.push_back(counts_[rank][other]);
      own->received.push_back(counts_[other][rank]);
    }
    own->input.resize(lay_out(own->sent, &own->sent_at));
    own->output.resize(lay_out(own->received, &own->received_at));
    if (in_place_) own->received_at = own->sent_at;
    own->slab.resize(slab_);
    for (std::byte& each : own->input) each = static_cast<std::byte>(random_());
    own->call.collective = Collective::alltoallv;
    own->call.input.counts = own->sent;
    own->call.input.offsets = own->sent_at;
    own->call.output.counts = own->received;
    own->call.output.offsets = own->received_at;
  }

  std::byte* address(Rank rank, const SlabWork::Spot& spot) {
    if (spot.memory == SlabMemory::slab) return all_[spot.rank].slab.data() + spot.at;
    const Call& call = all_[rank].call;
    return (spot.memory == SlabMemory::input ? call.input : call.output).base + spot.at;
  }

  const Rank ranks_;
  const size_t slab_;
  const bool in_place_;
  std::mt19937& random_;
  std::vector<std::vector<size_t>> counts_;  // from, to
  size_t longest_ = 0;
  std::vector<Sides> all_, before_;
};

TEST(SlabPhases, do_alltoallv) {
  std::mt19937 random(20240518);
  for (int round = 0; round < 200; ++round) {
    const Rank ranks = 2 + static_cast<Rank>(random() % 4);
    Alltoallv(ranks, 64 * ranks + random() % 6000, round % 2 == 0, random).run();
  }
}

TEST(SlabPhases, one_piece_takes_two_phases_or_three) {
  Call call;
  call.collective = Collective::broadcast;
  call.output.count = 1000;
  EXPECT_EQ(SlabPhases(call, 0, 2, 65536).count(), 2U);
  call.output.count = 65536;
  EXPECT_EQ(SlabPhases(call, 0, 2, 65536).count(), 3U);
  call.collective = Collective::allreduce;
  call.element = 4;
  call.input.count = 1000;
  EXPECT_EQ(SlabPhases(call, 0, 2, 65536).count(), 3U);
}

TEST(SlabPhases, need_room_for_sixteen_elements_a_slot) {
  Call call;
  call.collective = Collective::alltoall;
  EXPECT_EQ(SlabPhases::piece(call, 2, 65536), 16384U);
  EXPECT_EQ(SlabPhases::piece(call, 3000, 65536), 0U);
}

}  // namespace
}  // namespace sluice
