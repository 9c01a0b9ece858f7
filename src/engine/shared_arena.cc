// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/shared_arena.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "src/base/log.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks_for_life = 100ms;

// Logs a warning the first time in this process, and infos after that.
void say_why_not(const std::string& name, const Status& why) {
  static constinit std::atomic<bool> said{false};
  log(said.exchange(true) ? Level::info : Level::warning,
      "no shared memory for %s, another transport serves it: %s", name.c_str(),
      why.message().c_str());
}

}  // namespace

ArenaAgreement::ArenaAgreement(ArenaSource& source, Bootstrap& bootstrap,
                               std::vector<ProcessId> processes)
    : source_(source),
      bootstrap_(bootstrap),
      processes_(std::move(processes)),
      answers_(bootstrap.size()) {}

ArenaOffer ArenaAgreement::offer(bool again) try {
  if (!leads()) return {};
  auto made = source_.offer(processes_, again);
  if (made.ok()) return {true, *made};
  trouble_ = made.status();
  return {};
} catch (const std::bad_alloc&) {
  trouble_ = no_memory_;
  return {};
}

void ArenaAgreement::withdraw(const ArenaOffer& offered) {
  if (leads() && offered.made) source_.settle(offered.where, bootstrap_.size());
}

std::unique_ptr<Arena> ArenaAgreement::take_up(const ArenaOffer& offered) try {
  auto arena = source_.take_up(offered.where, processes_, bootstrap_.rank());
  if (arena.ok()) return std::move(*arena);
  trouble_ = arena.status();
  return nullptr;
} catch (const std::bad_alloc&) {
  trouble_ = no_memory_;
  return nullptr;
}

Result<std::unique_ptr<Arena>> ArenaAgreement::accept(const ArenaOffer& offered) {
  std::unique_ptr<Arena> arena = take_up(offered);
  if (leads()) source_.settle(offered.where, 0);
  if (!arena) return trouble_;
  return arena;
}

void ArenaAgreement::reject(const ArenaOffer& offered, const Status& cause) try {
  source_.reject(offered.where,
                 "rank " + std::to_string(bootstrap_.rank()) + ": " + cause.message());
} catch (const std::bad_alloc&) {
  source_.reject(offered.where, "no memory");
}

Status ArenaAgreement::exchange(const Answer& mine) {
  return bootstrap_.allgather(std::as_bytes(std::span(&mine, 1)),
                              std::as_writable_bytes(std::span(answers_)));
}

Result<std::unique_ptr<Arena>> ArenaAgreement::agree(const ArenaOffer& offered,
                                                     const std::string& name) {
  ArenaOffer offer = offered;
  Rank speaker = 0;
  for (const bool again : {false, true}) {
    if (again) {
      if (Status status = exchange({false, this->offer(true)}); !status.ok()) return status;
      offer = answers_[0].next;
    }
    if (!offer.made) {
      speaker = 0;
      break;
    }
    std::unique_ptr<Arena> arena = take_up(offer);
    if (Status status = exchange({arena != nullptr, {}}); !status.ok()) return status;
    const auto is_bad = [](const Answer& each) { return !each.good; };
    const auto missing = static_cast<uint32_t>(std::ranges::count_if(answers_, is_bad));
    if (leads()) source_.settle(offer.where, missing);
    if (missing == 0) return arena;
    speaker = static_cast<Rank>(std::ranges::find_if(answers_, is_bad) - answers_.begin());
  }
  if (bootstrap_.rank() == speaker) say_why_not(name, trouble_);
  return std::unique_ptr<Arena>();
}

Status why_not_met(const Rounds& rounds) {
  if (rounds.signals().is_aborted()) return {Code::aborted, rounds.signals().cause()};
  return {Code::internal, "ranks do not meet in shared memory"};
}

Status why_not_moved(const Rounds::FailedMove& move) {
  if (move.error == ESRCH) return {Code::peer_lost, "its process is gone"};
  char reason[128] = "";
  const std::string what = move.is_put ? "receive buffer can't be written" : "memory can't be read";
  return {Code::unavailable, "its " + what +
                                 " in one copy: " + strerror_r(move.error, reason, sizeof(reason)) +
                                 " (SLUICE_SINGLE_COPY=off on all ranks does without)"};
}

// One exchange if all ranks have met before or some rank does without CMA, two otherwise.
Status join_arena(Arena& arena, WaitPolicy& wait_policy, ArenaMember mine,
                  std::vector<ArenaMember>* members) {
  Rounds& rounds = arena.rounds();
  Cma* const cma = arena.cma();
  const Rank me = rounds.rank(), ranks = rounds.size();
  members->resize(ranks);
  mine.tries = mine.tries && cma;
  mine.has_met_all = mine.reached_all = mine.tries;
  if (mine.tries) mine.introduction = cma->introduction();
  for (Rank rank = 0; mine.tries && rank < ranks; ++rank) {
    if (rank == me) continue;
    const std::optional<bool> met = cma->met(rank);
    mine.has_met_all = mine.has_met_all && met;
    mine.reached_all = mine.reached_all && met.value_or(true);
  }
  rounds.begin(~uint32_t{0}, 0, &wait_policy);
  const auto hear = [&](Rank rank, const ArenaMember& theirs) { (*members)[rank] = theirs; };
  constexpr uint64_t lines = Rounds::lines_of<ArenaMember>;
  if (!rounds.exchange(1, mine, hear)) return why_not_met(rounds);
  const auto all = [&](bool ArenaMember::*is) { return std::ranges::all_of(*members, is); };
  bool all_good = all(&ArenaMember::tries) && all(&ArenaMember::reached_all);
  const bool is_known = !all_good || all(&ArenaMember::has_met_all);
  if (!is_known) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      const bool is_met = rank == me || cma->met(rank);
      if (!is_met && !cma->probe(rank, (*members)[rank].introduction)) all_good = false;
    }
    const auto apply = [&](Rank, bool theirs) { all_good = all_good && theirs; };
    if (!rounds.exchange(lines + 1, all_good, apply)) return why_not_met(rounds);
  }
  rounds.end(is_known ? lines : lines + 1);
  if (all_good) rounds.set_cma(cma);
  return {};
}

bool ArenaWaitPolicy::wait(uint32_t rank) {
  if (!begun_) {
    if (counts_) counts_->begin_wait();
    waiter_.begin();
    looked_ = {};
    begun_ = true;
  }
  if (rank != rank_) gone_ = false;
  rank_ = rank;
  if (fresh) waiter_.stir();
  fresh = false;
  waiter_.idle();
  set_polls();
  status_ = watch_(waiter_.waited(), rank);
  return status_.ok() && check_process(rank);
}

bool ArenaWaitPolicy::check_process(Rank rank) {
  if (gone_) {
    status_ = {Code::peer_lost, arena_.rounds().signals().has_left(rank)
                                    ? "it finished (MPI_Finalize) while it was still expected"
                                    : "its process is gone"};
    return false;
  }
  if (looked_ == Waiter::Clock::time_point{}) looked_ = waiter_.now();
  if (waiter_.now() - looked_ < between_looks_for_life) return true;
  looked_ = waiter_.now();
  gone_ = arena_.rounds().signals().has_left(rank) || !arena_.lives(rank);
  return true;
}

}  // namespace sluice
