// SPDX-License-Identifier: BSD-3-Clause
//
// TCP endpoints that several threads use.
#include <atomic>
#include <thread>

#include "tests/unit/support/sweep.h"
#include "tests/unit/transports/tcp_rig.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;

TEST(TcpThreads, AProcessMayLeaveRightAfterItsLastSend) {
  auto receiver = tcp()(Ranks::process(1));
  auto sender = tcp()(Ranks::process(0));
  const size_t bytes = 500000;
  const TeamId team{Ranks::process(0), 1};
  auto in = receiver->open(team, {Ranks::process(0), sender->address(), "rank 0"});
  std::thread leaving([&, to = receiver->address()] {
    auto out = sender->open(team, {Ranks::process(1), to, "rank 1"});
    {
      Message message({1, 0, 0, 0}, bytes);
      message.fill().send(**out);
      EXPECT_TRUE(wait_for(*sender, [&] { return message.ok(); }));
    }
    out->reset();
    sender->say_bye();
    sender.reset();
  });
  Message message({1, 0, 0, 0}, bytes), none({1, 1, 0, 0}, bytes);
  std::this_thread::sleep_for(milliseconds(50));
  message.receive(**in);
  EXPECT_TRUE(wait_for(*receiver, [&] { return message.done(); }));
  EXPECT_TRUE(message.ok() && message.holds_pattern()) << message.why();
  none.receive(**in);
  EXPECT_TRUE(wait_for(*receiver, [&] { return none.done(); }));
  EXPECT_NE(none.why().find("rank 0 finished"), std::string::npos) << none.why();
  leaving.join();
}

// Several threads in each of two processes, each with a channel of its own.
TEST(TcpThreads, ManyThreadsOnOneLink) {
  TcpOptions options;
  options.window = 64 << 10;
  Ranks ranks(tcp(options), 2);
  constexpr uint32_t teams = 4;
  for (uint32_t team = 1; team <= teams; ++team) {
    ranks.channel(0, 1, team);
    ranks.channel(1, 0, team);
  }
  std::atomic<int> failures{0};
  std::atomic<uint32_t> finished{0};
  const auto run = [&](size_t rank, uint32_t team) {
    Channel& channel = ranks.channel(rank, 1 - rank, team);
    for (uint32_t call = 0; call < sweep(200U, 100U, 50U) && failures == 0; ++call) {
      Messages messages;
      const size_t bytes = (call * 7919 + team) % 50000;
      add(messages, {call, 0, 0, 3}, bytes).receive(channel);
      add(messages, {call, 0, 0, 3}, bytes).fill().send(channel);
      failures += !wait_for(ranks.at(rank), [&] { return Ranks::all_done(messages); });
      for (auto& message : messages) failures += !message->ok() || !message->holds_pattern();
    }
    ++finished;
    wait_for(ranks.at(rank), [&] { return finished == 2 * teams; });
  };
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank) {
    for (uint32_t team = 1; team <= teams; ++team) threads.emplace_back(run, rank, team);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

// A thread that sleeps for its own message is woken even if another thread read it.
TEST(TcpThreads, ASleeperLearnsWhatAnotherThreadRead) {
  Ranks ranks(tcp(), 2);
  ASSERT_TRUE(exchange(ranks, 1));
  ASSERT_TRUE(exchange(ranks, 2));
  Channel& mine = ranks.channel(1, 0, 1);
  std::atomic<bool> stop{false};
  std::thread spinner([&] {
    while (!stop) ranks.at(1).progress();
  });
  for (uint32_t call = 10; call < 10 + sweep(50U, 25U, 25U); ++call) {
    Message receive({call, 0, 0, 0}, 8), send({call, 0, 0, 0}, 8);
    receive.receive(mine);
    std::thread sender([&] {
      std::this_thread::sleep_for(milliseconds(2));
      send.send(ranks.channel(0, 1, 1));
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

TEST(TcpThreads, WaitDoesNotSleepOverWhatAnotherThreadFinished) {
  Ranks ranks(tcp(), 2);
  ASSERT_TRUE(exchange(ranks));
  Message receive({2, 0, 0, 0}, 8), send({2, 0, 0, 0}, 8);
  receive.receive(ranks.channel(1, 0));
  ranks.at(1).progress();
  ranks.at(1).wait(milliseconds(1));
  ranks.at(1).progress();
  ASSERT_FALSE(receive.done());
  send.send(ranks.channel(0, 1));
  std::thread([&] { wait_for(ranks.at(1), [&] { return receive.done(); }); }).join();
  ranks.at(1).wait(longer_than_the_watchdog);
  EXPECT_TRUE(receive.done());
}

// Threads wait, post and close while peers come and go.
TEST(TcpThreads, PeersOfOthersComeAndGo) {
  auto stays = tcp()(Ranks::process(0));
  std::atomic<int> failures{0};
  const auto run = [&](uint64_t first) {
    for (uint64_t i = 0; i < 40; ++i) {
      const ProcessId process = Ranks::process(first + i);
      auto visitor = tcp()(process);
      const TeamId team{process, 1};
      auto here = stays->open(team, {process, visitor->address(), "visitor"});
      auto there = visitor->open(team, {Ranks::process(0), stays->address(), "who stays"});
      Message out({1, 0, 0, 0}, 5000), in({1, 0, 0, 0}, 5000);
      in.receive(**here);
      out.fill().send(**there);
      failures += !wait_for(*stays, [&] {
        visitor->progress();
        return in.done() && out.done();
      });
      failures += !in.ok() || !in.holds_pattern();
      if (i % 4 == 0) std::this_thread::sleep_for(milliseconds(30));
    }
  };
  std::vector<std::thread> threads;
  for (const uint64_t first : {1000, 2000, 3000}) threads.emplace_back(run, first);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace sluice
