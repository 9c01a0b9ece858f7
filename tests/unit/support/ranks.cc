// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/support/ranks.h"

#include <barrier>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace sluice::testing {
namespace {

// An allgather through one shared buffer.
class ThreadBootstrap final : public Bootstrap {
 public:
  struct Shared {
    explicit Shared(Rank ranks) : size(ranks), meet(ranks) {}
    const Rank size;
    std::barrier<> meet;
    std::vector<std::byte> bytes;
  };

  ThreadBootstrap(Shared& shared, Rank rank) : shared_(shared), rank_(rank) {}
  Rank rank() const override { return rank_; }
  Rank size() const override { return shared_.size; }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (rank_ == 0) shared_.bytes.resize(all.size());
    shared_.meet.arrive_and_wait();
    if (!mine.empty()) {
      std::memcpy(shared_.bytes.data() + rank_ * mine.size(), mine.data(), mine.size());
    }
    shared_.meet.arrive_and_wait();
    if (!all.empty()) std::memcpy(all.data(), shared_.bytes.data(), all.size());
    shared_.meet.arrive_and_wait();
    return {};
  }

 private:
  Shared& shared_;
  Rank rank_;
};

ProcessId random_id() {
  std::random_device random;
  const auto word = [&] { return uint64_t{random()} << 32 | random(); };
  return {word(), word()};
}

}  // namespace

void on_ranks(Rank ranks, const EndpointMaker& endpoints, const Adjust& adjust, const Body& body) {
  ThreadBootstrap::Shared shared(ranks);
  std::vector<std::unique_ptr<Process>> processes;
  for (Rank rank = 0; rank < ranks; ++rank) {
    auto process = std::make_unique<Process>();
    process->id = random_id();
    process->version = "test";
    process->label = "thread " + std::to_string(rank);
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
      auto team = Team::form(process, bootstrap, "threads");
      Member member{process, rank, ranks, team.ok() ? team->get() : nullptr, team.status()};
      body(member);
      if (team.ok()) team->reset();
      process.endpoint.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sluice::testing
