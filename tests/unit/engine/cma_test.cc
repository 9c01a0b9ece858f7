// SPDX-License-Identifier: BSD-3-Clause
//
// Shared-memory algorithms that use CMA: when they are used, when ranks may leave, and what follows
// from copies that fail or come too late.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "collectives/shm/shm.h"
#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"
#include "tests/unit/support/sweep.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr Collective all_collectives[] = {
    Collective::broadcast, Collective::allgather,      Collective::alltoall, Collective::reduce,
    Collective::allreduce, Collective::reduce_scatter, Collective::gather,   Collective::scatter};
constexpr auto time_limit = 20s;

class ByCma : public ::testing::Test {
 protected:
  void run(Rank ranks, const Body& body, const Adjust& adjust = {}) {
    const EndpointMaker endpoints = [this](Rank, const ProcessId& id) { return hub_.endpoint(id); };
    const Adjust fetch = [&](Rank rank, Process& process) {
      process.arenas = arenas_.source();
      process.host = 1;
      for (uint32_t i = 0; i < collective_count; ++i) {
        const bool has_one = find_algorithm(static_cast<Collective>(i), "fetch");
        process.knobs.algorithm[i] = has_one ? "fetch" : "";
      }
      if (adjust) adjust(rank, process);
    };
    on_ranks(ranks, endpoints, fetch, body);
  }

  LoopbackHub hub_;
  ArenaHub arenas_;
};

void add(const void* left, const void* right, void* out, size_t n, const void*) {
  const auto *l = static_cast<const uint32_t*>(left), *r = static_cast<const uint32_t*>(right);
  for (size_t i = 0; i < n; ++i) static_cast<uint32_t*>(out)[i] = l[i] + r[i];
}

// Whether the condition becomes true before the time limit.
template <typename Condition>
bool comes_true(const Condition& condition) {
  const auto end = steady_clock::now() + time_limit;
  while (!condition()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// One call of a collective: every rank's element i is 1000 * rank + i; blocks have `count`
// elements.
class Trial {
 public:
  Trial(const Member& member, Collective collective, Rank root, size_t count = 20001)
      : member_(member),
        collective_(collective),
        root_(root),
        count_(count),
        input_(has_blocks_in() ? member.size * count : count),
        output_(has_blocks_out() ? member.size * count : count) {
    for (size_t i = 0; i < input_.size(); ++i) input_[i] = value(member.rank, i);
    if (collective == Collective::broadcast) output_ = input_;
  }

  Status run() {
    Call call;
    call.collective = collective_;
    call.root = root_;
    call.element = sizeof(uint32_t);
    call.input = {reinterpret_cast<std::byte*>(input_.data()), count_, {}, {}};
    call.output = {reinterpret_cast<std::byte*>(output_.data()), count_, {}, {}};
    call.bytes = std::max(input_.size(), output_.size()) * sizeof(uint32_t);
    if (is_reducing(collective_)) call.reduction = {add, nullptr, true};
    return member_.team->run(call);
  }

  void check() const {
    const bool is_at_root = collective_ == Collective::reduce || collective_ == Collective::gather;
    if (is_at_root && member_.rank != root_) return;
    for (size_t i = 0; i < output_.size(); ++i) {
      ASSERT_EQ(output_[i], expected(i)) << to_string(collective_) << " at " << i;
    }
  }

  // The program may change its memory after the call.
  void overwrite() {
    std::ranges::fill(input_, other);
    std::ranges::fill(output_, other);
  }
  void overwrite_result() { std::ranges::fill(output_, other); }
  bool is_overwritten() const {
    return std::ranges::all_of(input_, is_other) && is_result_overwritten();
  }
  bool is_result_overwritten() const { return std::ranges::all_of(output_, is_other); }

 private:
  static constexpr uint32_t other = 0xEEEEEEEE;
  static bool is_other(uint32_t word) { return word == other; }

  static uint32_t value(Rank rank, size_t i) { return static_cast<uint32_t>(1000 * rank + i); }
  bool has_blocks_in() const {
    return collective_ == Collective::alltoall || collective_ == Collective::reduce_scatter ||
           collective_ == Collective::scatter;
  }
  bool has_blocks_out() const {
    return collective_ == Collective::alltoall || collective_ == Collective::allgather ||
           collective_ == Collective::gather;
  }
  uint32_t expected(size_t i) const {
    const Rank from = static_cast<Rank>(i / count_);
    if (collective_ == Collective::broadcast) return value(root_, i);
    if (collective_ == Collective::allgather || collective_ == Collective::gather) {
      return value(from, i % count_);
    }
    if (collective_ == Collective::scatter) return value(root_, member_.rank * count_ + i);
    if (collective_ == Collective::alltoall) return value(from, member_.rank * count_ + i % count_);
    const size_t at = collective_ == Collective::reduce_scatter ? member_.rank * count_ + i : i;
    uint32_t sum = 0;
    for (Rank rank = 0; rank < member_.size; ++rank) sum += value(rank, at);
    return sum;
  }

  const Member& member_;
  const Collective collective_;
  const Rank root_;
  const size_t count_;
  std::vector<uint32_t> input_, output_;
};

void run_and_check(const Member& member, Collective collective, Rank root) {
  Trial trial(member, collective, root);
  const Status status = trial.run();
  ASSERT_TRUE(status.ok()) << status.message();
  trial.check();
}

TEST_F(ByCma, IsUsedWhereAllRanksCan) {
  run(3, [](Member& member) { run_and_check(member, Collective::broadcast, 1); });
  EXPECT_GT(arenas_.moves(), 0U);
}

TEST_F(ByCma, IsNotUsedWhereNoneCan) {
  arenas_.forbid_cma();
  run(3, [](Member& member) { run_and_check(member, Collective::broadcast, 1); });
  EXPECT_EQ(arenas_.moves(), 0U);
}

TEST_F(ByCma, IsNotUsedWhereOneRankCanNotReachOneOther) {
  for (const auto& [mover, owner] : {std::pair(0U, 1U), std::pair(1U, 0U), std::pair(2U, 0U)}) {
    SCOPED_TRACE("rank " + std::to_string(mover) + " to " + std::to_string(owner));
    arenas_.part(mover, owner);
    run(3, [](Member& member) { run_and_check(member, Collective::broadcast, 1); });
  }
  EXPECT_EQ(arenas_.moves(), 0U);
}

TEST_F(ByCma, IsNotUsedIfItIsSwitchedOff) {
  run(
      3, [](Member& member) { run_and_check(member, Collective::broadcast, 1); },
      [](Rank, Process& process) { process.knobs.single_copy = false; });
  EXPECT_EQ(arenas_.moves(), 0U);
}

TEST_F(ByCma, MemoryOutOfReachGoesThroughTheSlots) {
  for (const Rank ranks : sweep({2U, 3U}, {2U, 3U}, {3U})) {
    for (Rank hidden = 0; hidden <= ranks; ++hidden) {  // the last: no rank is hidden
      arenas_.hide_memory_of(hidden);
      run(ranks, [&](Member& member) {
        for (Rank root = 0; root < ranks; ++root) {
          for (const Collective each : all_collectives) {
            SCOPED_TRACE("rank " + std::to_string(hidden) + " of " + std::to_string(ranks));
            run_and_check(member, each, root);
          }
        }
      });
    }
  }
}

// Shares of several pieces; each rank's memory has another page offset.
TEST_F(ByCma, ResultsInPlaceAreRight) {
  for (const Rank ranks : {2U, 3U, 4U}) {
    const size_t count = ranks * ShmCall::scratch_piece * 5 / 2 / sizeof(uint32_t) + 7;
    run(ranks, [&](Member& member) {
      std::vector<uint32_t> memory(count + 2 * member.rank);
      uint32_t* const data = &memory[2 * member.rank];
      for (size_t i = 0; i < count; ++i) data[i] = static_cast<uint32_t>(member.rank + i);
      Call call;
      call.collective = Collective::allreduce;
      call.element = sizeof(uint32_t);
      call.input = call.output = {reinterpret_cast<std::byte*>(data), count, {}, {}};
      call.bytes = count * sizeof(uint32_t);
      call.reduction = {add, nullptr, true};
      ASSERT_TRUE(member.team->run(call).ok());
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(data[i], ranks * (ranks - 1) / 2 + ranks * i) << i << " of " << ranks << " ranks";
      }
    });
  }
}

// A rank's first CMA get or put is late. No rank whose memory it needs may have left the call.
// After leaving, a rank may change its memory without harm to others, and its changes stay.
TEST_F(ByCma, NobodyLeavesWhileItsMemoryIsNeeded) {
  for (const Collective each : all_collectives) {
    for (const bool is_put : {false, true}) {
      for (const Rank late : sweep<Rank>({0, 1, 2}, {0, 1, 2}, {0, 2})) {
        const std::string what = std::string(to_string(each)) +
                                 (is_put ? ", put by " : ", fetched by ") + std::to_string(late);
        constexpr auto longest_pause = 20ms;
        const Rank ranks = each == Collective::broadcast && is_put ? 2 : 3;
        std::atomic<Rank> left{0};
        std::atomic<bool> was_late{false};
        arenas_.before_moves([&](const ArenaHub::Move& move) {
          if (move.mover != late || move.is_put != is_put || was_late.exchange(true)) return;
          const auto end = steady_clock::now() + longest_pause;
          while (left < ranks - 1 && steady_clock::now() < end) std::this_thread::yield();
        });
        run(ranks, [&](Member& member) {
          SCOPED_TRACE(what);
          Trial trial(member, each, 1);
          const Status status = trial.run();
          EXPECT_TRUE(status.ok()) << status.message();
          trial.check();
          trial.overwrite();
          ++left;
          ASSERT_TRUE(comes_true([&] { return left == ranks; }));
          EXPECT_TRUE(trial.is_overwritten()) << "by another rank";
        });
      }
    }
  }
}

// Any copy may fail, also after moving a part. The rank that made it must report the error, and the
// others must learn of it.
TEST_F(ByCma, ACopyThatFailsIsAnError) {
  for (const Collective each : all_collectives) {
    for (const uint32_t which : {1U, 2U}) {
      SCOPED_TRACE(std::string(to_string(each)) + ", copy " + std::to_string(which));
      std::array<std::string, 3> messages;
      arenas_.fail_move(which, EPERM);
      std::atomic<Rank> ended{0};
      run(3, [&](Member& member) {
        Trial trial(member, each, 1);
        messages[member.rank] = trial.run().message();
        ++ended;  // others may still read this rank's memory, to no effect
        ASSERT_TRUE(comes_true([&] { return ended == 3; }));
      });
      size_t told = 0;
      for (const std::string& message : messages) {
        if (message.empty()) continue;  // of a broadcast: it has its data
        ++told;
        EXPECT_NE(message.find("in one copy: Operation not permitted"), std::string::npos)
            << message;
        EXPECT_NE(message.find("SLUICE_SINGLE_COPY=off"), std::string::npos) << message;
        EXPECT_NE(message.find("(thread "), std::string::npos) << message;
      }
      EXPECT_GE(told, 2U);
    }
  }
}

TEST_F(ByCma, ARankThatDiesWhileItsMemoryIsReadIsNamed) {
  std::string message;
  std::atomic<bool> learned{false};
  std::atomic<Rank> ended{0};
  arenas_.fail_move(1, ESRCH);
  arenas_.before_moves([&](const ArenaHub::Move& move) {
    if (move.mover == 1) (void)comes_true([&] { return learned.load(); });
  });
  run(2, [&](Member& member) {
    Trial trial(member, Collective::allreduce, 0);
    const Status status = trial.run();
    if (member.rank == 0) {
      message = status.message();
      learned = true;
    }
    ++ended;
    ASSERT_TRUE(comes_true([&] { return ended == 2; }));
  });
  EXPECT_NE(message.find("rank 1 (thread 1): its process is gone"), std::string::npos) << message;
}

// Rank 2 reads the root's memory after the root has left; the copy itself succeeds.
TEST_F(ByCma, WhatIsReadAfterARankGaveUpDoesNotCount) {
  std::atomic<bool> reads{false}, has_left{false};
  std::atomic<Rank> ended{0};
  std::atomic<Rank> done{0};  // ranks past the first call, which needs all ranks for its slots
  arenas_.before_moves([&](const ArenaHub::Move&) {
    if (done < 3) return;
    reads = true;
    EXPECT_TRUE(comes_true([&] { return has_left.load(); }));
  });
  std::string message;
  run(3, [&](Member& member) {
    run_and_check(member, Collective::broadcast, 0);
    ++done;
    ASSERT_TRUE(comes_true([&] { return done == 3; }));
    if (member.rank == 1) {
      EXPECT_TRUE(comes_true([&] { return reads.load(); }));
      (void)member.team->fail_call({Code::internal, "out of paper"});
      return;
    }
    Trial trial(member, Collective::broadcast, 0);
    const Status status = trial.run();
    EXPECT_FALSE(status.ok());
    trial.overwrite();
    if (member.rank == 0) has_left = true;
    if (member.rank == 2) message = status.message();
    ++ended;
    ASSERT_TRUE(comes_true([&] { return ended == 2; }));
  });
  EXPECT_NE(message.find("rank 1: "), std::string::npos) << message;
  EXPECT_NE(message.find("out of paper"), std::string::npos) << message;
}

// Rank 0 gives up while rank 1 writes the first of three pieces into its memory.
TEST_F(ByCma, WhoGivesUpWaitsForWhatIsWrittenIntoItsMemory) {
  constexpr auto pause = 30ms, longest_wait = 400ms;  // less than the longest possible wait
  const auto is_in_time = [&] {
    steady_clock::time_point given_up, ended;
    arenas_.before_moves([&](const ArenaHub::Move& move) {
      if (!move.is_put || move.mover != 1) return;
      EXPECT_TRUE(comes_true([&] {
        const auto now = steady_clock::now();
        if (!arenas_.is_aborted()) given_up = now;
        return arenas_.is_aborted();
      }));
      std::this_thread::sleep_for(pause);
    });
    bool is_overwritten = false;
    run(2, [&](Member& member) {
      if (member.rank == 0) member.process.knobs.timeout = 0.1;
      Trial trial(member, Collective::reduce, 0, 5 * ShmCall::scratch_piece / sizeof(uint32_t));
      EXPECT_FALSE(trial.run().ok());
      if (member.rank == 1) return void(ended = steady_clock::now());
      trial.overwrite_result();  // rank 1 may still read the input, to no effect
      std::this_thread::sleep_for(2 * pause);
      is_overwritten = trial.is_result_overwritten();
    });
    const bool good = ended - given_up < longest_wait;
    EXPECT_TRUE(is_overwritten || !good);
    return good;
  };
  EXPECT_TRUE(comes_true(is_in_time)) << "the machine is too busy";
}

}  // namespace
}  // namespace sluice::testing
