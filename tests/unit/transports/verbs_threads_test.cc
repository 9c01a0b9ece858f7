// SPDX-License-Identifier: BSD-3-Clause
//
// What threads of a process share over RDMA: a device, the descriptor that its queue pairs report
// to, links, and the endpoint's lock.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/transports/fake_verbs.h"
#include "tests/unit/transports/tcp_rig.h"
#include "transports/verbs/upgrade.h"

namespace sluice {
namespace {

// Each endpoint has a device, which all its links and threads use.
MakeEndpoint over_small_rings(size_t get_least = VerbsOptions::never) {
  fake_verbs::reset({});
  return [get_least](const ProcessId& self) {
    TcpOptions options;
    options.window = 64 << 10;
    options.get_least = get_least;
    VerbsOptions verbs{4096, "", true, &fake_verbs::table()};
    verbs.get_least = get_least;
    options.upgrades = {make_verbs_upgrades(verbs)};
    return tcp(options)(self);
  };
}

// Has every rank and team run a thread of its own, and waits for all.
template <typename Run>
void run_threads(size_t ranks, uint32_t teams, const Run& run) {
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (uint32_t team = 1; team <= teams; ++team) threads.emplace_back(run, rank, team);
  }
  for (std::thread& thread : threads) thread.join();
}

void open_channels(Ranks& ranks, uint32_t teams) {
  for (size_t from = 0; from < ranks.size(); ++from) {
    for (size_t to = 0; to < ranks.size(); ++to) {
      for (uint32_t team = 1; from != to && team <= teams; ++team) ranks.channel(from, to, team);
    }
  }
}

// Three processes of three threads. Links move to the device while some threads sleep.
TEST(VerbsThreads, ManyThreadsOnTheLinksOfOneDevice) {
  constexpr size_t processes = 3;
  constexpr uint32_t teams = 3, calls = 24;
  Ranks ranks(over_small_rings(), processes);
  open_channels(ranks, teams);
  std::atomic<int> failures{0};
  std::atomic<size_t> finished{0};
  run_threads(processes, teams, [&](size_t rank, uint32_t team) {
    for (uint32_t call = 0; call < calls && failures == 0; ++call) {
      Messages messages;
      const size_t bytes = (call * 7919 + team) % (call % 8 == 0 ? 20000 : 500);
      for (size_t other = 0; other < processes; ++other) {
        if (other == rank) continue;
        Channel& channel = ranks.channel(rank, other, team);
        add(messages, {call, 0, 0, 3}, bytes).receive(channel);
        add(messages, {call, 0, 0, 3}, bytes).fill().send(channel);
      }
      failures += !wait_for(ranks.at(rank), [&] { return Ranks::all_done(messages); });
      for (auto& message : messages) failures += !message->ok() || !message->holds_pattern();
    }
    ++finished;
    wait_for(ranks.at(rank), [&] { return finished == processes * teams; });
  });
  EXPECT_EQ(failures, 0);
  for (size_t rank = 0; rank < processes; ++rank) {
    EXPECT_STREQ(ranks.channel(rank, (rank + 1) % processes).carrier(), "verbs");
  }
}

// A thread that sleeps on the device's descriptor is woken even if another thread took the
// completion.
TEST(VerbsThreads, ASleeperLearnsWhatAnotherThreadTook) {
  Ranks ranks(over_small_rings(), 2);
  ASSERT_TRUE(exchange_until(ranks, "verbs"));
  std::atomic<bool> stop{false};
  std::thread spinner([&] {
    while (!stop) ranks.at(1).progress();
  });
  for (uint32_t call = 10; call < 40; ++call) {
    Message receive({call, 0, 0, 0}, 8), send({call, 0, 0, 0}, 8);
    receive.receive(ranks.channel(1, 0));
    std::thread sender([&, &channel = ranks.channel(0, 1)] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      send.send(channel);
    });
    while (!receive.done()) {
      ranks.at(1).progress();
      if (!receive.done()) ranks.at(1).wait(longer_than_the_watchdog);
    }
    sender.join();
    EXPECT_TRUE(ranks.drive([&] { return send.done(); }));
  }
  stop = true;
  spinner.join();
}

// The end of a read wakes who sleeps, though another thread has begun it.
TEST(VerbsThreads, ASleeperIsWokenByAReadThatAnotherThreadBegan) {
  Ranks ranks(over_small_rings(1000), 2);
  ASSERT_TRUE(exchange_until(ranks, "verbs"));
  std::atomic<bool> stop{false};
  std::thread spinner([&] {
    while (!stop) ranks.at(1).progress();
  });
  for (uint32_t call = 10; call < 40; ++call) {
    Message receive({call, 0, 0, 0}, 50000), send({call, 0, 0, 0}, 50000);
    receive.receive(ranks.channel(1, 0));
    std::thread sender([&, &channel = ranks.channel(0, 1)] {
      send.fill().send(channel);
      wait_for(ranks.at(0), [&] { return send.done(); });
    });
    while (!receive.done()) {
      ranks.at(1).progress();
      if (!receive.done()) ranks.at(1).wait(longer_than_the_watchdog);
    }
    sender.join();
    EXPECT_TRUE(send.ok() && receive.ok() && receive.holds_pattern());
  }
  EXPECT_EQ(ranks.at(0).traffic().got, 30 * 50000);
  stop = true;
  spinner.join();
}

// Several threads sleep on one descriptor, each for a message over a link of its own.
TEST(VerbsThreads, SleepersOnOneDescriptorWakeEachForItsLink) {
  constexpr size_t others = 3;
  Ranks ranks(over_small_rings(), others + 1);
  std::atomic<int> failures{0};
  std::atomic<size_t> finished{0};
  open_channels(ranks, 1);
  const auto wait_asleep = [&](size_t rank, Message& message) {
    while (!message.done()) {
      ranks.at(rank).progress();
      if (!message.done()) ranks.at(rank).wait(std::chrono::milliseconds(50));
    }
    failures += !message.ok() || !message.holds_pattern();
  };
  const auto pass = [&](size_t from, size_t to, uint32_t call, bool sends) {
    Message message({call, 0, 0, 0}, 100);
    Channel& channel = sends ? ranks.channel(from, to) : ranks.channel(to, from);
    sends ? message.fill().send(channel) : message.receive(channel);
    wait_asleep(sends ? from : to, message);
  };
  // Rank 0 has a thread for each other rank, which sends what that sends back.
  std::vector<std::thread> threads;
  for (size_t other = 1; other <= others; ++other) {
    for (const bool begins : {true, false}) {
      threads.emplace_back([&, other, begins] {
        for (uint32_t call = 0; call < 100 && failures == 0; ++call) {
          if (begins) pass(0, other, call, true);
          pass(begins ? other : 0, begins ? 0 : other, call, false);
          if (!begins) pass(other, 0, call, true);
        }
        ++finished;
        wait_for(ranks.at(begins ? 0 : other), [&] { return finished == 2 * others; });
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_STREQ(ranks.channel(0, 1).carrier(), "verbs");
}

}  // namespace
}  // namespace sluice
