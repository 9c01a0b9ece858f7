// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the transport contract, over every transport and every mode of it: ranks that are
// threads.
#include <atomic>
#include <thread>

#include "tests/unit/support/sweep.h"
#include "tests/unit/transports/conformance.h"

namespace sluice::conformance {
namespace {

class ThreadsConformance : public Conformance {};

TEST_P(ThreadsConformance, RanksAsThreads) {
  const size_t count = 4;
  Ranks ranks(make(), count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      if (i != j) ranks.channel(i, j);
    }
  }
  std::atomic<int> failures{0}, finished{0};
  const auto run = [&](size_t rank) {
    for (uint32_t call = 0; call < sweep(50U, 50U, 20U); ++call) {
      Messages messages;
      for (size_t other = 0; other < count; ++other) {
        if (other == rank) continue;
        const size_t bytes = call % 5 == 0 ? max_message : 8 * call;
        add(messages, {call, 0, 0, 3}, bytes, call % 3).receive(ranks.channel(rank, other));
        add(messages, {call, 0, 0, 3}, bytes).fill().send(ranks.channel(rank, other));
      }
      if (!wait_for(ranks.at(rank), [&] { return Ranks::all_done(messages); })) ++failures;
      for (auto& message : messages) failures += !message->ok() || !message->holds_pattern();
      if (failures != 0) break;
    }
    // RTS messages and late ones need their sender's progress until all ranks have their messages.
    ++finished;
    wait_for(ranks.at(rank), [&] { return finished == count; });
  };
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < count; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

TEST_P(ThreadsConformance, WaitEndsWithWhatItWaitedFor) {
  Ranks ranks(make(), 2);
  Message receive({1, 0, 0, 0}, 8), send({1, 0, 0, 0}, 8);
  Channel& out = ranks.channel(0, 1);
  receive.receive(ranks.channel(1, 0));
  ranks.drive_a_while();
  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    send.send(out);
    wait_for(ranks.at(0), [&] { return send.done(); });
  });
  while (!receive.done()) {
    ranks.at(1).progress();
    if (!receive.done()) ranks.at(1).wait(longer_than_the_watchdog);
  }
  EXPECT_TRUE(receive.ok());
  sender.join();
}

INSTANTIATE_TEST_SUITE_P(Transports, ThreadsConformance, testing::ValuesIn(possible_modes()),
                         name_of);

}  // namespace
}  // namespace sluice::conformance
