// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/shared_arena.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "src/base/log.h"
#include "src/engine/agreement.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks_for_life = 100ms;

// What a rank says in each exchange. gone, poor: it gave up waiting, or has no memory; here for the
// last time.
enum class Standing : uint8_t { bad, good, gone, poor };

struct Answer {
  Standing standing = Standing::bad;
  ArenaSource::Offer offer{};  // the leader's, in the first exchange of an attempt
};

// An error if any rank has left.
Status find_leavers(const std::vector<Answer>& answers) {
  constexpr std::pair<Standing, const char*> reasons[] = {
      {Standing::gone, " gave up waiting for all ranks to come (SLUICE_SETUP_TIMEOUT)"},
      {Standing::poor, " had no memory to set it up"},
  };
  for (const auto& [standing, words] : reasons) {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < answers.size(); ++rank) {
      if (answers[rank].standing == standing) ranks.push_back(rank);
    }
    if (!ranks.empty()) return {Code::aborted, describe_ranks(ranks) + words};
  }
  return {};
}

// A warning once in this process.
void say_why_not(const std::string& name, const Status& why) {
  static constinit std::atomic<bool> said{false};
  log(said.exchange(true) ? Level::info : Level::warning,
      "no shared memory for %s, another transport serves it: %s", name.c_str(),
      why.message().c_str());
}

// An attempt is two exchanges: the leader's offer, and how all found it. A rank whose time is up in
// one is found gone in the next, however late the others come; after the last of the first attempt
// there may be none, but then the arena tells them. Between exchanges nothing is thrown.
class Negotiation {
 public:
  Negotiation(ArenaSource& source, Bootstrap& bootstrap, std::span<const ProcessId> processes)
      : source_(source), bootstrap_(bootstrap), processes_(processes), answers_(bootstrap.size()) {}

  // ok with nullptr: not this time.
  Result<std::unique_ptr<Arena>> attempt(bool again) {
    Answer answer;
    if (leads()) offer(again, &answer);
    const Status told = exchange(answer, true);
    if (!told.ok()) {
      if (answer.standing == Standing::good) source_.settle(answer.offer, 0);
      return told;
    }
    const Answer offered = answers_[0];
    offered_ = offered.standing == Standing::good;
    std::unique_ptr<Arena> arena;
    if (offered_) arena = take_up(offered.offer);
    const Status heard = exchange({arena ? Standing::good : Standing::bad, {}}, !again);
    const auto is_bad = [](const Answer& each) { return each.standing == Standing::bad; };
    const auto missing = static_cast<uint32_t>(std::ranges::count_if(answers_, is_bad));
    if (leads() && offered_) source_.settle(offered.offer, heard.ok() ? missing : 0);
    if (!heard.ok()) {
      if (arena) arena->rounds().abort(heard.message());
      return heard;
    }
    if (missing == 0) return arena;
    speaker_ = static_cast<Rank>(std::ranges::find_if(answers_, is_bad) - answers_.begin());
    return std::unique_ptr<Arena>();
  }

  // After an attempt that came to nothing. Whether another may help; who says why, and what it was.
  bool was_offered() const { return offered_; }
  bool speaks() const { return bootstrap_.rank() == speaker_; }
  const Status& trouble() const { return trouble_; }

 private:
  bool leads() const { return bootstrap_.rank() == 0; }
  void offer(bool again, Answer* answer) try {
    auto made = source_.offer(processes_, again);
    if (made.ok()) {
      *answer = {Standing::good, *made};
    } else {
      trouble_ = made.status();
    }
  } catch (const std::bad_alloc&) {
    trouble_ = no_memory_;
  }
  std::unique_ptr<Arena> take_up(const ArenaSource::Offer& offer) try {
    auto arena = source_.take_up(offer, processes_, bootstrap_.rank());
    if (arena.ok()) return std::move(*arena);
    trouble_ = arena.status();
    return nullptr;
  } catch (const std::bad_alloc&) {
    trouble_ = no_memory_;
    return nullptr;
  }

  // Everybody's, into answers_. more: others may go on to another exchange.
  Status exchange(const Answer& mine, bool more) {
    Status status = bootstrap_.allgather(std::as_bytes(std::span(&mine, 1)),
                                         std::as_writable_bytes(std::span(answers_)),
                                         Bootstrap::Limit::deadline);
    const bool is_missing = status.code() == Code::memory;
    if (is_missing || (more && !status.ok())) leave_arena_agreement(bootstrap_, status.code());
    return status.ok() ? find_leavers(answers_) : status;
  }

  ArenaSource& source_;
  Bootstrap& bootstrap_;
  std::span<const ProcessId> processes_;
  std::vector<Answer> answers_;
  const Status no_memory_{Code::memory, "no memory to find it"};
  Rank speaker_ = 0;
  bool offered_ = false;
  Status trouble_;
};

}  // namespace

void leave_arena_agreement(Bootstrap& bootstrap, Code why) {
  const Answer last{why == Code::memory ? Standing::poor : Standing::gone, {}};
  (void)bootstrap.leave(std::as_bytes(std::span(&last, 1)));
}

Result<std::unique_ptr<Arena>> agree_on_arena(ArenaSource& source, Bootstrap& bootstrap,
                                              std::span<const ProcessId> processes,
                                              const std::string& name) {
  std::optional<Negotiation> negotiation;
  try {
    negotiation.emplace(source, bootstrap, processes);
  } catch (const std::bad_alloc&) {
    leave_arena_agreement(bootstrap, Code::memory);
    throw;
  }
  for (const bool again : {false, true}) {
    auto arena = negotiation->attempt(again);
    if (!arena.ok() || *arena) return arena;
    if (!negotiation->was_offered()) break;
  }
  if (negotiation->speaks()) say_why_not(name, negotiation->trouble());
  return std::unique_ptr<Arena>();
}

Status why_not_met(const Rounds& rounds) {
  if (rounds.is_aborted()) return {Code::aborted, rounds.cause()};
  return {Code::internal, "ranks do not meet in shared memory"};
}

Status agree_on_fetching(Arena& arena, Patience& patience) {
  Rounds& rounds = arena.rounds();
  Fetcher* const fetcher = arena.fetcher();
  bool good = fetcher != nullptr;
  const auto introduction = fetcher ? fetcher->introduction() : Fetcher::Introduction{};
  rounds.begin(~uint32_t{0}, 0, &patience);
  const auto meet = [&](Rank rank, const Fetcher::Introduction& theirs) {
    if (rank != rounds.rank()) good = good && fetcher->meet(rank, theirs);
  };
  if (!rounds.exchange(1, introduction, meet)) return why_not_met(rounds);
  bool all_good = true;
  const auto heed = [&](Rank, bool theirs) { all_good = all_good && theirs; };
  if (!rounds.exchange(2, good, heed)) return why_not_met(rounds);
  rounds.end(2);
  if (all_good) rounds.set_fetcher(fetcher);
  return {};
}

bool ArenaPatience::wait(uint32_t rank) {
  if (!begun_) {
    waiter_.begin();
    looked_ = {};
    begun_ = true;
  }
  if (rank != rank_) gone_ = false;
  rank_ = rank;
  if (fresh) waiter_.stir();
  fresh = false;
  waiter_.idle();
  look_as_often();
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
  if (looked_ == Waiter::Clock::time_point{}) looked_ = waiter_.now();
  if (waiter_.now() - looked_ < between_looks_for_life) return true;
  looked_ = waiter_.now();
  gone_ = arena_.rounds().has_left(rank) || !arena_.lives(rank);
  return true;
}

}  // namespace sluice
