// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks that fail or wait too long: the others must learn of it, whatever connections exist.
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>

#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/allocations.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"
#include "tests/unit/support/stopwatch.h"
#include "tests/unit/support/sweep.h"
#include "transports/tcp/tcp.h"

namespace sluice::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Ranks check for others' failures at once, not only twice a second.
void be_quick(Process& process) { process.between_checks = milliseconds(5); }

// An endpoint with injected faults.
class Flawed final : public Endpoint {
 public:
  struct Flaws {
    int unopened = 0;       // this many channels cannot be opened
    int unaffordable = 0;   // opening this many channels fails for lack of memory
    bool restless = false;  // progress() always reports movement
  };
  Flawed(std::unique_ptr<Endpoint> real, const Flaws& flaws)
      : real_(std::move(real)), flaws_(flaws) {}

  const char* name() const override { return real_->name(); }
  Caps caps() const override { return real_->caps(); }
  std::vector<std::byte> address() const override { return real_->address(); }
  Result<std::unique_ptr<Channel>> open(const TeamId& team, const Peer& peer) override {
    if (flaws_.unopened-- > 0) return Status{Code::memory, "no room at the inn"};
    if (flaws_.unaffordable-- > 0) throw std::bad_alloc();
    return real_->open(team, peer);
  }
  bool can_connect() override { return real_->can_connect(); }
  bool progress() override { return real_->progress() || flaws_.restless; }
  void wait(std::chrono::microseconds limit) override { real_->wait(limit); }
  void say_bye() override { real_->say_bye(); }

 private:
  std::unique_ptr<Endpoint> real_;
  Flaws flaws_;
};

std::unique_ptr<Endpoint> tcp(const ProcessId& id) {
  TcpOptions options;
  options.self = id;
  auto made = make_tcp_endpoint(options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(*made);
}

Call barrier() {
  Call call;
  call.collective = Collective::barrier;
  return call;
}

// A broadcast of one byte.
Call broadcast(std::byte& data) {
  Call call;
  call.collective = Collective::broadcast;
  call.bytes = call.output.count = 1;
  call.output.base = &data;
  return call;
}

// Returns when all ranks have called it; does not drive the endpoint.
void rest_until_all_are_done(std::atomic<Rank>& done, Rank ranks) {
  ++done;
  while (done < ranks) std::this_thread::sleep_for(milliseconds(1));
}

// One rank fails before it has any connection, and returns to a program that makes no more calls.
// Either side may have to open the connection; random ids decide.
void fail_first(Rank ranks, Rank failing, bool refuses, milliseconds others_late) {
  const auto endpoints = [&](Rank rank, const ProcessId& id) -> std::unique_ptr<Endpoint> {
    const Flawed::Flaws flaws{rank == failing && !refuses ? 1 : 0, 0, false};
    return std::make_unique<Flawed>(tcp(id), flaws);
  };
  const auto hurry = [](Rank, Process& process) {
    be_quick(process);
    // The failing rank reaches all. Others pass it on in vain to those that have heard it.
    process.knobs.timeout = 10;
  };
  std::atomic<Rank> done{0};
  on_ranks(ranks, endpoints, hurry, [&](Member& member) {
    ASSERT_TRUE(member.team) << member.formed.message();
    const Stopwatch watch;
    Status status;
    if (member.rank != failing) {
      std::this_thread::sleep_for(others_late);
      status = member.team->run(barrier());
      EXPECT_EQ(status.code(), Code::aborted);
      EXPECT_NE(status.message().find("rank " + std::to_string(failing)), std::string::npos);
    } else if (refuses) {
      status = member.team->fail_call({Code::memory, "no room at the inn"});
    } else {
      status = member.team->run(barrier());
    }
    EXPECT_NE(status.message().find("no room at the inn"), std::string::npos) << status.message();
    EXPECT_TRUE(is_prompt(watch.elapsed(), seconds(3)));
    rest_until_all_are_done(done, member.size);
  });
}

TEST(GivingUp, ReachesPeersThatAreNotConnectedYet) {
  for (const bool refuses : {false, true}) {
    for (const Rank ranks : {2, 3}) {
      for (Rank failing = 0; failing < ranks; ++failing) {
        for (const milliseconds late : {milliseconds(0), milliseconds(50)}) {
          SCOPED_TRACE(std::to_string(failing) + " of " + std::to_string(ranks));
          fail_first(ranks, failing, refuses, late);
        }
      }
    }
  }
}

// The channel to one peer cannot be opened; the other peer must be told all the same.
TEST(GivingUp, ReachesThoseForWhomThereIsMemory) {
  const auto endpoints = [](Rank rank, const ProcessId& id) -> std::unique_ptr<Endpoint> {
    return std::make_unique<Flawed>(tcp(id), Flawed::Flaws{0, rank == 1 ? 1 : 0, false});
  };
  const auto hurry = [](Rank, Process& process) {
    be_quick(process);
    process.knobs.timeout = 10;
    process.knobs.algorithm[static_cast<size_t>(Collective::barrier)] = "all_to_all";
  };
  std::atomic<Rank> done{0};
  on_ranks(3, endpoints, hurry, [&](Member& member) {
    ASSERT_TRUE(member.team) << member.formed.message();
    if (member.rank == 1) {
      EXPECT_FALSE(member.team->fail_call({Code::memory, "no room at the inn"}).ok());
    } else if (member.rank == 2) {
      const Status status = member.team->run(barrier());
      EXPECT_EQ(status.code(), Code::aborted);
      EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
    }
    rest_until_all_are_done(done, member.size);
  });
}

// The rank that gives up lacks memory once more, for whatever it needs in order to say so. (What it
// had connected before the others may use.)
TEST(GivingUp, ReachesPeersAlthoughOneAllocationFails) {
  const auto hurry = [](Rank, Process& process) {
    be_quick(process);
    process.knobs.timeout = 10;
  };
  const uint32_t step = sweep(1U, 1U, 3U);
  bool was_refused = true;
  for (uint32_t allocation = 0; was_refused; allocation += step) {
    SCOPED_TRACE(allocation);
    std::atomic<Rank> done{0};
    on_ranks(
        3, [](Rank, const ProcessId& id) { return tcp(id); }, hurry,
        [&](Member& member) {
          ASSERT_TRUE(member.team) << member.formed.message();
          EXPECT_TRUE(member.team->run(barrier()).ok());
          Status status{Code::memory, "no room at the inn"};
          if (member.rank == 1) {
            const RefusedAllocations lacking(allocation, 1);
            status = member.team->fail_call(status);
            was_refused = RefusedAllocations::any();
          } else {
            status = member.team->run(barrier());
            EXPECT_EQ(status.code(), Code::aborted);
          }
          EXPECT_NE(status.message().find("no room at the inn"), std::string::npos);
          rest_until_all_are_done(done, member.size);
        });
    ASSERT_LT(allocation, 1000U);
  }
}

// A rank that waits for one rank learns that another has given up, though it needs nothing from it.
TEST(GivingUp, ReachesThoseWhoWaitForOthers) {
  const auto patient = [](Rank, Process& process) {
    be_quick(process);
    process.knobs.timeout = 20;
    process.knobs.algorithm[static_cast<size_t>(Collective::broadcast)] = "one_to_all";
  };
  std::atomic<Rank> connected{0}, done{0};
  on_ranks(
      3, [](Rank, const ProcessId& id) { return tcp(id); }, patient,
      [&](Member& member) {
        ASSERT_TRUE(member.team) << member.formed.message();
        std::byte data{};
        Call call = broadcast(data);
        for (const Rank root : {0, 1, 2}) {
          call.root = root;
          EXPECT_TRUE(member.team->run(call).ok());
        }
        rest_until_all_are_done(connected, member.size);
        if (member.rank == 1) {
          call.root = 0;
          const Stopwatch watch;
          const Status status = member.team->run(call);
          EXPECT_EQ(status.code(), Code::aborted);
          EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
          EXPECT_TRUE(is_prompt(watch.elapsed(), seconds(3)));
        } else if (member.rank == 2) {
          EXPECT_FALSE(member.team->fail_call({Code::memory, "no room at the inn"}).ok());
        }
        rest_until_all_are_done(done, member.size);
      });
}

// With an arena, a rank that gives up opens no connections: ranks that wait in a plan check the
// arena.
TEST(GivingUp, ReachesPlansThatWaitThroughTheArena) {
  ArenaHub arenas;
  const auto patient = [&](Rank, Process& process) {
    be_quick(process);
    process.arenas = arenas.source();
    process.host = 1;
    process.knobs.timeout = 20;
    process.knobs.algorithm[static_cast<size_t>(Collective::broadcast)] = "one_to_all";
  };
  std::atomic<Rank> done{0};
  on_ranks(
      3, [](Rank, const ProcessId& id) { return tcp(id); }, patient,
      [&](Member& member) {
        ASSERT_TRUE(member.team) << member.formed.message();
        std::byte data{};
        Call call = broadcast(data);
        if (member.rank == 1) {
          const Status status = member.team->run(call);
          EXPECT_EQ(status.code(), Code::aborted) << status.message();
          EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
        } else if (member.rank == 2) {
          std::this_thread::sleep_for(milliseconds(50));  // so that rank 1 waits by then
          EXPECT_FALSE(member.team->fail_call({Code::memory, "no room at the inn"}).ok());
        }
        rest_until_all_are_done(done, member.size);
      });
}

// A rank whose copy runs while another one aborts waits a little, because the copy's memory can be
// used again only when it has ended.
TEST(GivingUp, LeavesCopiesALittleTime) {
  ArenaHub arenas;
  const auto in_arena = [&](Rank, Process& process) {
    process.arenas = arenas.source();
    process.host = 1;
  };
  std::atomic<Rank> done{0};
  std::atomic<bool> has_aborted{false};
  on_ranks(
      2, [](Rank, const ProcessId& id) { return tcp(id); }, in_arena,
      [&](Member& member) {
        ASSERT_TRUE(member.team) << member.formed.message();
        if (member.rank == 1) {
          EXPECT_FALSE(member.team->fail_call({Code::memory, "no room at the inn"}).ok());
          has_aborted = true;
        } else {
          while (!has_aborted) std::this_thread::sleep_for(milliseconds(1));
          int asked = 0;
          const auto is_done = [&] { return ++asked > 1; };
          EXPECT_TRUE(member.team->wait_for_copy(is_done, "a copy").ok());
          const Status status = member.team->wait_for_copy([] { return false; }, "a copy");
          EXPECT_EQ(status.code(), Code::aborted);
          EXPECT_NE(status.message().find("no room at the inn"), std::string::npos);
        }
        rest_until_all_are_done(done, member.size);
      });
}

// The failed rank sent its reason, then ended. The others must report the reason, not a lost peer.
TEST(GivingUp, IsHeardAfterTheConnectionsEnd) {
  ArenaHub arenas;
  const auto share = [&](Rank, Process& process) {
    process.arenas = arenas.source();
    process.host = 1;
    process.knobs.algorithm[static_cast<size_t>(Collective::broadcast)] = "one_to_all";
  };
  std::atomic<Rank> connected{0};
  std::atomic<bool> gone{false};
  on_ranks(
      2, [](Rank, const ProcessId& id) { return tcp(id); }, share,
      [&](Member& member) {
        ASSERT_TRUE(member.team) << member.formed.message();
        std::byte data{};
        Call call = broadcast(data);
        call.root = 1;
        EXPECT_TRUE(member.team->run(call).ok());
        rest_until_all_are_done(connected, member.size);
        if (member.rank == 1) {
          EXPECT_FALSE(member.team->fail_call({Code::memory, "no room at the inn"}).ok());
          member.process.endpoint.reset();
          gone = true;
          return;
        }
        while (!gone) std::this_thread::sleep_for(milliseconds(1));
        for (int i = 0; i < 100; ++i) member.process.endpoint->wait(milliseconds(1));
        const Status status = member.team->run(call);
        EXPECT_EQ(status.code(), Code::aborted);
        EXPECT_NE(status.message().find("no room at the inn"), std::string::npos)
            << status.message();
      });
}

TEST(GivingUp, TakesNoTimeForThoseWhoAreGone) {
  std::atomic<bool> gone{false};
  on_ranks(
      2, [](Rank, const ProcessId& id) { return tcp(id); }, {},
      [&](Member& member) {
        ASSERT_TRUE(member.team);
        EXPECT_TRUE(member.team->run(barrier()).ok());
        if (member.rank == 1) {
          member.process.endpoint.reset();
          gone = true;
          return;
        }
        while (!gone) std::this_thread::sleep_for(milliseconds(1));
        const Stopwatch watch;
        EXPECT_EQ(member.team->run(barrier()).code(), Code::peer_lost);
        EXPECT_TRUE(is_prompt(watch.elapsed(), milliseconds(250)));
      });
}

// Other teams' traffic never ends, but a call's deadline must still pass.
TEST(GivingUp, ADeadlinePassesThoughSomethingMovesAlways) {
  LoopbackHub hub;
  const auto endpoints = [&](Rank, const ProcessId& id) {
    return std::make_unique<Flawed>(hub.endpoint(id), Flawed::Flaws{0, 0, true});
  };
  const auto hurry = [](Rank, Process& process) { process.knobs.timeout = 0.2; };
  std::atomic<Rank> done{0};
  on_ranks(2, endpoints, hurry, [&](Member& member) {
    ASSERT_TRUE(member.team);
    if (member.rank == 0) {
      EXPECT_EQ(member.team->run(barrier()).code(), Code::timeout);
    }
    rest_until_all_are_done(done, member.size);
  });
}

}  // namespace
}  // namespace sluice::testing
