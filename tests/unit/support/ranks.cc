// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/support/ranks.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/support/sweep.h"

namespace sluice::testing {
namespace {

// More threads than this sleep while they wait, but in `make check-long`: threads that all spin on
// few processors take a hundred times as long. Smaller teams spin as processes do by default.
constexpr Rank most_that_spin = 4;
constexpr int spin_before_sleep = 20;  // microseconds

// Allgathers through shared memory.
class ThreadBootstrap final : public Bootstrap {
 public:
  struct Round {
    std::vector<std::byte> bytes;
    Rank came = 0;
  };
  struct Shared {
    explicit Shared(Rank ranks) : size(ranks) {}
    const Rank size;
    std::mutex lock;
    std::condition_variable changed;
    std::map<uint32_t, Round> rounds;
  };

  ThreadBootstrap(Shared& shared, Rank rank) : shared_(shared), rank_(rank) {}
  Rank rank() const override { return rank_; }
  Rank size() const override { return shared_.size; }
  // (The timeout only turns a deadlock, a bug in Sluice, into an error.)
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::unique_lock lock(shared_.lock);
    const Round& round = give(mine);
    const auto complete = [&] { return round.came == shared_.size; };
    if (!shared_.changed.wait_for(lock, std::chrono::seconds(20), complete)) {
      return {Code::timeout, "nobody came"};
    }
    std::ranges::copy(round.bytes, all.begin());
    return {};
  }
  uint64_t group_fingerprint() const override { return 1; }

 private:
  const Round& give(std::span<const std::byte> mine) {
    Round& round = shared_.rounds[next_++];
    round.bytes.resize(mine.size() * shared_.size);
    std::ranges::copy(mine, round.bytes.begin() + static_cast<ptrdiff_t>(rank_ * mine.size()));
    ++round.came;
    shared_.changed.notify_all();
    return round;
  }

  Shared& shared_;
  const Rank rank_;
  uint32_t next_ = 0;
};

ProcessId random_id() {
  std::random_device random;
  const auto word = [&] { return uint64_t{random()} << 32 | random(); };
  return {word(), word()};
}

}  // namespace

void on_ranks(Rank ranks, const EndpointMaker& endpoints, const Adjust& adjust, const Body& body,
              const Hinter& hints, Rank absent) {
  ThreadBootstrap::Shared shared(ranks);
  std::vector<std::unique_ptr<Process>> processes;
  for (Rank rank = 0; rank < ranks; ++rank) {
    auto process = std::make_unique<Process>();
    process->id = random_id();
    process->version = "test";
    process->label = "thread " + std::to_string(rank);
    if (ranks > most_that_spin && !sweeps_all()) process->knobs.spin = spin_before_sleep;
    process->endpoint = endpoints(rank, process->id);
    processes.push_back(std::move(process));
  }
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Process& process = *processes[rank];
      if (adjust) adjust(rank, process);
      auto selector = Selector::make(process.knobs);
      if (selector.ok()) process.selector = std::move(*selector);
      ThreadBootstrap bootstrap(shared, rank);
      Hints given = hints ? hints(rank) : Hints();
      if (rank == absent) {
        (void)Team::report_failed_rank(process, bootstrap);
        return;
      }
      auto team = Team::form(process, bootstrap, "threads", &given);
      Member member{process,       rank,  ranks,    team.ok() ? team->get() : nullptr,
                    team.status(), given, bootstrap};
      body(member);
      if (team.ok()) team->reset();
      process.team_cache.clear();
      process.endpoint.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sluice::testing
