// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/shared_arena.h"

#include <algorithm>
#include <cstring>

#include "src/base/log.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks_for_life = 100ms;
constexpr uint32_t looks_alone = 200;   // at some 20 ns each
constexpr uint32_t looks_crowded = 10;  // whoever shares this processor may be waited for

// What a rank says after each step.
struct Answer {
  bool good = false;
  ArenaSource::Offer offer{};  // the leader's, in the first
};

Result<std::vector<Answer>> exchange(const Answer& mine, Bootstrap& bootstrap) {
  std::vector<Answer> all(bootstrap.size());
  const auto bytes = std::as_bytes(std::span(&mine, 1));
  if (Status status = bootstrap.allgather(bytes, std::as_writable_bytes(std::span(all)));
      !status.ok()) {
    return status;
  }
  return all;
}

void report(const std::string& name, const Status& why) {
  log(Level::info, "no shared memory for %s: %s", name.c_str(), why.message().c_str());
}

class Negotiation {
 public:
  Negotiation(ArenaSource& source, Bootstrap& bootstrap, std::span<const ProcessId> processes,
              const std::string& name)
      : source_(source), bootstrap_(bootstrap), processes_(processes), name_(name) {}

  // ok with nullptr: not this time.
  Result<std::unique_ptr<Arena>> attempt(bool fresh) {
    Answer answer;
    if (leads()) offer(fresh, &answer);
    auto offers = exchange(answer, bootstrap_);
    if (!offers.ok()) {
      if (answer.good) source_.settle(answer.offer);
      return offers.status();
    }
    const Answer offered = (*offers)[0];
    if (!offered.good) return std::unique_ptr<Arena>();
    auto arena = source_.take_up(offered.offer, processes_, bootstrap_.rank());
    if (!arena.ok()) report(name_, arena.status());
    auto answers = exchange({arena.ok(), {}}, bootstrap_);
    if (leads()) source_.settle(offered.offer);
    if (!answers.ok()) return answers.status();
    const bool all_good = std::ranges::all_of(*answers, [](const Answer& a) { return a.good; });
    return all_good ? std::move(*arena) : std::unique_ptr<Arena>();
  }

 private:
  bool leads() const { return bootstrap_.rank() == 0; }
  void offer(bool fresh, Answer* answer) {
    auto made = source_.offer(processes_, fresh);
    answer->good = made.ok();
    if (made.ok()) {
      answer->offer = *made;
    } else {
      report(name_, made.status());
    }
  }

  ArenaSource& source_;
  Bootstrap& bootstrap_;
  std::span<const ProcessId> processes_;
  const std::string& name_;
};

}  // namespace

Result<std::unique_ptr<Arena>> agree_on_arena(ArenaSource& source, Bootstrap& bootstrap,
                                              std::span<const ProcessId> processes,
                                              const std::string& name) {
  Negotiation negotiation(source, bootstrap, processes, name);
  for (const bool fresh : {false, true}) {
    auto arena = negotiation.attempt(fresh);
    if (!arena.ok() || *arena) return arena;
  }
  return std::unique_ptr<Arena>();
}

Status agree_on_fetching(Arena& arena, Patience& patience) {
  Rounds& rounds = arena.rounds();
  Fetcher* const fetcher = arena.fetcher();
  const auto told = [&](uint64_t k, const auto& mine, auto&& heed) {
    if (!rounds.open(k)) return false;
    std::memcpy(rounds.data(rounds.rank(), k, sizeof(mine)), &mine, sizeof(mine));
    rounds.publish(k, sizeof(mine));
    for (Rank rank = 0; rank < rounds.size(); ++rank) {
      auto theirs = mine;
      if (!rounds.await(rank, k, sizeof(mine))) return false;
      std::memcpy(&theirs, rounds.data(rank, k, sizeof(mine)), sizeof(mine));
      heed(rank, theirs);
    }
    rounds.take(k);
    return true;
  };
  bool good = fetcher != nullptr;
  const auto introduction = fetcher ? fetcher->introduction() : Fetcher::Introduction{};
  rounds.begin(~uint32_t{0}, &patience);
  const bool met = told(1, introduction, [&](Rank rank, const Fetcher::Introduction& theirs) {
    if (rank != rounds.rank()) good = good && fetcher->meet(rank, theirs);
  });
  bool all_good = true;
  const auto heed = [&](Rank, bool theirs) { all_good = all_good && theirs; };
  if (!met || !told(2, good, heed)) return {Code::internal, "ranks do not meet in shared memory"};
  rounds.end(2);
  if (all_good) rounds.set_fetcher(fetcher);
  return {};
}

void ArenaPatience::begin() {
  begun_ = gone_ = false;
  looks = waiter_.crowded() ? looks_crowded : looks_alone;
}

bool ArenaPatience::wait(uint32_t rank) {
  if (!begun_) {
    waiter_.begin();
    looked_ = Waiter::Clock::now();
    begun_ = true;
  }
  if (rank != rank_) gone_ = false;
  rank_ = rank;
  if (fresh) waiter_.stir();
  fresh = false;
  waiter_.idle();
  looks = waiter_.crowded() ? looks_crowded : looks_alone;
  status_ = watch_(waiter_.waited(), rank);
  return status_.ok() && look_for_life(rank);
}

bool ArenaPatience::look_for_life(Rank rank) {
  if (gone_) {
    status_ = {Code::peer_lost, arena_.rounds().has_left(rank)
                                    ? "it finished (MPI_Finalize) while it was still expected"
                                    : "its process is gone"};
    return false;
  }
  if (waiter_.now() - looked_ < between_looks_for_life) return true;
  looked_ = waiter_.now();
  gone_ = arena_.rounds().has_left(rank) || !arena_.lives(rank);
  return true;
}

}  // namespace sluice
