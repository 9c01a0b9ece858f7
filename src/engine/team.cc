// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/engine_team.h"

#include <algorithm>
#include <new>
#include <string>

#include "src/base/log.h"
#include "src/engine/agreement.h"
#include "src/engine/routes.h"

namespace sluice {

// Runs a plan on what is long of a call in shared memory. It is packed already.
class EngineTeam::LongBlocksByLinks final : public OverLinks {
 public:
  explicit LongBlocksByLinks(EngineTeam& team) : team_(team) {}

  bool start(const Algorithm& by, size_t shorter) override {
    CallInFlight& call = team_.blocking_;
    Call packed = *call.call;
    packed.input.source = nullptr;
    if (!blocks_.leave(packed, team_.rank_, team_.size(), shorter)) {
      return team_.break_team(team_.process_.no_memory_for_call).ok();
    }
    if (!blocks_.any()) return true;
    call.call = &blocks_.call();
    call.by = &team_.plan_;
    return team_.start(call, by).ok();
  }

  bool finish(const std::function<bool()>& is_sound) override {
    if (!blocks_.any()) return true;
    team_.blocking_.is_sound = &is_sound;
    const bool finished = team_.wait(team_.blocking_).ok();
    team_.blocking_.is_sound = nullptr;
    team_.blocking_.by = nullptr;
    return finished;
  }

 private:
  EngineTeam& team_;
  LongBlocks blocks_;
};

EngineTeam::EngineTeam(Process& process, std::string name, Rank rank, TeamId id,
                       std::vector<Peer> peers, std::vector<uint32_t> hosts)
    : process_(process),
      name_(std::move(name)),
      rank_(rank),
      channels_(process.endpoint.get(), id, std::move(peers)),
      waiter_(process.endpoint.get(), process.progress_mpi, process.knobs.spin,
              process.oversubscription),
      resources_{process.knobs, process.endpoint.get(), channels_,
                 rank,          channels_.size(),       std::move(hosts)},
      decider_(*this, process, name_, rank, channels_.size(), resources_.hosts),
      blocking_(process.knobs),
      plan_(resources_),
      cells_(resources_, process.no_memory_for_call),
      links_(std::make_unique<LongBlocksByLinks>(*this)),
      failures_(rank, channels_, waiter_, shm_, process),
      counts_(process.knobs, process.delay, ClassCounts::Kind::blocking, waiter_, channels_.size()),
      halves_({process, name_, rank, channels_, shm_, resources_.hosts}) {}

Status EngineTeam::share(std::unique_ptr<Arena> arena) {
  if (!arena) return {};
  shm_.emplace(
      process_, channels_, rank_, std::move(arena), waiter_,
      [this](std::chrono::nanoseconds waited, Rank peer) { return watch_arena(waited, peer); },
      counts_.classes(), *links_);
  Status status = shm_->exchange_members(name_);
  if (status.ok()) decider_.selection().learn(shm_->traits());
  return status;
}

void EngineTeam::apply(const Hints& hints) try {
  decider_.selection().apply(hints);
} catch (const std::bad_alloc&) {
  (void)fail_call(process_.no_memory_for_call);
}

void EngineTeam::hand_over_counts() {
  if (!process_.knobs.counts_calls()) return;  // (the endpoint may be gone)
  if (!counts_.empty()) counts_.hand_over(halves_.counted(), &process_.statistics);
  halves_.settle_accounts();
}

void EngineTeam::settle_accounts() {
  hand_over_counts();
  const bool keeps = process_.knobs.counts_calls() || !process_.knobs.choice_file.empty();
  if (keeps) decider_.trials().hand_over(id(), &process_.outcomes);
}

bool EngineTeam::retire() {
  settle_accounts();
  decider_.trials().give_memory_back();
  plan_.trim();
  cells_.trim();
  cells_.reset();
  const bool sound = broken_.ok() && !failures_.is_aborted_in_arena();
  if (shm_) shm_->trim(sound);
  const bool is_whole = halves_.retire() && sound;
  return is_whole && !decider_.selection().has_hints();
}

void EngineTeam::serve(const std::string& name) {
  name_ = name;
  earlier_ = number_;
  halves_.serve();
  blocking_.call = nullptr;
}

// These enclose a call that blocks.
void EngineTeam::begin(const Call& call) {
  blocking_.call = &call;
  blocking_.number = ++number_;
}

Status EngineTeam::end(const Status& status) {
  blocking_.call = blocking_.preceded = nullptr;
  return status;
}

Status EngineTeam::find_way(const Call& call, const CarrierSet& able, Way* way) {
  if (!broken_.ok()) return broken_;
  Status status = decider_.find_way(call, can_use_shm(call), able, way);
  if (!way->of || !counts_.are_on()) return status;
  way->is_counted = way->by != Way::By::sluice;
  way->pretended = counts_.pretended(way->begins_with_mpi() ? routes::mpi : *way->algorithm);
  return status;
}

// The way of short calls comes first, and straight.
Status EngineTeam::run_by(const Algorithm& algorithm, const Call& call) {
  if (!broken_.ok()) return broken_;
  begin(call);
  const bool is_plain = algorithm.means() == Means::shared_memory &&
                        !shm_->concerns_slots(algorithm, call, blocking_.number) &&
                        counts_.pass(algorithm, call.bytes);
  if (!is_plain) return run_otherwise(algorithm, call);
  if (!shm_->run(algorithm, call)) return break_by_shm(call);
  blocking_.call = nullptr;
  return {};
}

// A call that needs slots, goes over links, or is counted.
Status EngineTeam::run_otherwise(const Algorithm& algorithm, const Call& call) {
  const Algorithm* const by = see_to_slots(algorithm, call);
  if (!by) return broken_;
  const auto began = counts_.begin();
  const Status status = execute(*by, call);
  count(*by, call, began);
  return end(status);
}

Status EngineTeam::run_with(Executor& executor, const Algorithm& name, const Call& call) {
  if (!broken_.ok()) return broken_;
  begin(call);
  const auto began = counts_.begin();
  const Status status = execute(executor, name);
  count(name, call, began);
  return end(status);
}

Status EngineTeam::exchange(const Call& before, std::span<const std::byte> mine,
                            std::span<std::byte> all, std::vector<ExchangeTimes>* times) {
  if (mine.size() <= exchange_at_once && !times) return exchange_piece(before, mine, all);
  std::vector<std::byte> pieces(size() * exchange_at_once);
  if (times) times->reserve(mine.size() / exchange_at_once + 1);
  for (size_t begin = 0; begin < mine.size(); begin += exchange_at_once) {
    const size_t length = std::min(mine.size() - begin, exchange_at_once);
    const auto piece = std::span(pieces).first(size() * length);
    const int64_t entry = times ? in_nanoseconds(Clock::now()) : 0;
    Status status = exchange_piece(before, mine.subspan(begin, length), piece);
    if (!status.ok()) return status;
    if (times) times->push_back({entry, in_nanoseconds(Clock::now())});
    for (Rank rank = 0; rank < size(); ++rank) {
      copy_bytes(all.data() + rank * mine.size() + begin, piece.data() + rank * length, length);
    }
  }
  return {};
}

// (No rule is asked: the program's allgathers may be MPI's. All ranks take the same algorithm.)
Status EngineTeam::exchange_piece(const Call& before, std::span<const std::byte> mine,
                                  std::span<std::byte> all) {
  if (!broken_.ok()) return broken_;
  Call call;
  call.collective = Collective::allgather;
  call.root = Call::exchange_root + static_cast<Rank>(before.collective);
  call.bytes = all.size();
  call.input.base = const_cast<std::byte*>(mine.data());
  call.output.base = all.data();
  call.input.count = call.output.count = mine.size();
  const bool shm = can_use_shm(call);
  begin(call);
  blocking_.preceded = &before;
  counts_.begin();
  const Status status = execute(*find_algorithm(call.collective, shm ? "flat" : "bruck"), call);
  counts_.end_uncounted();
  ++earlier_;
  return end(status);
}

Status EngineTeam::break_by_shm(const Call& call) {
  return broken_.ok() ? break_team(shm_->failure(call)) : broken_;
}

// The algorithm for the call: the one given, or one without slots if it needs them and not all
// ranks can reserve them. Null if the team broke.
const Algorithm* EngineTeam::see_to_slots(const Algorithm& algorithm, const Call& call) {
  if (algorithm.means() != Means::shared_memory) return &algorithm;
  if (!shm_->concerns_slots(algorithm, call, blocking_.number)) return &algorithm;
  switch (shm_->prepare_slots(algorithm, call, blocking_.number)) {
    case Slots::Answer::go:
      return &algorithm;
    case Slots::Answer::lack:
      return choose_without_slots(call);
    case Slots::Answer::failed:
      break;
  }
  (void)break_by_shm(call);
  return nullptr;
}

const Algorithm* EngineTeam::choose_without_slots(const Call& call) try {
  if (const Status why = shm_->take_lack(); !why.ok()) {
    static constinit std::atomic<bool> said{false};
    log(said.exchange(true) ? Level::info : Level::warning,
        "no shared memory for long messages on %s, another transport carries them: %s",
        name_.c_str(), why.message().c_str());
  }
  const Algorithm* const plan = decider_.selection().choose_without_shm(call);
  if (!plan) (void)break_team({Code::internal, "no algorithm serves it without slots"});
  return plan;
} catch (const std::bad_alloc&) {
  (void)break_team(process_.no_memory_for_call);
  return nullptr;
}

Status EngineTeam::fail_call(const Status& cause) {
  if (!broken_.ok()) return broken_;
  blocking_.call = blocking_.preceded = nullptr;
  blocking_.number = ++number_;
  return break_team(cause);
}

Status EngineTeam::execute(const Algorithm& algorithm, const Call& call) {
  switch (algorithm.means()) {
    case Means::shared_memory:
      return shm_->run(algorithm, call) ? Status() : break_by_shm(call);
    case Means::cells:
      return execute(cells_, algorithm);
    case Means::plan:
    case Means::outside:  // (never: it is given its executor)
      break;
  }
  return execute(plan_, algorithm);
}

Status EngineTeam::execute(Executor& by, const Algorithm& algorithm) {
  blocking_.by = &by;
  Status status = start(blocking_, algorithm);
  if (status.ok()) status = wait(blocking_);
  blocking_.by = nullptr;
  return status;
}

Status EngineTeam::start(CallInFlight& call, const Algorithm& algorithm) try {
  call.state = Executor::State::waiting;
  call.has_lost_rank = false;
  const Status status = call.by->start(algorithm, *call.call, call.number);
  return status.ok() ? status : break_team(status, call);
} catch (const std::bad_alloc&) {
  return break_team(process_.no_memory_for_call, call);
}

std::string EngineTeam::describe(const CallInFlight& call) const {
  const std::string which = "call " + std::to_string(call.number - earlier_) + " on " + name_;
  const Call* const shown = call.preceded ? call.preceded : call.call;
  if (!shown) return which;
  return describe_signature(encode_signature(shown->collective, shown->root)) + " (" + which + ")";
}

// Tells all ranks why this one gives up. False if it lacks the memory for that.
bool EngineTeam::tell(const Status& cause, const CallInFlight& call) try {
  const bool passes_on = cause.code() == Code::aborted;
  broken_ = passes_on ? cause : cause.with(describe(call));
  const std::string own = "rank " + std::to_string(rank_) + ": ";
  return failures_.tell((passes_on ? "" : own) + broken_.message(), passes_on);
} catch (const std::bad_alloc&) {
  return false;
}

// Breaks the team: withdraws posted operations and tells the peers why, so that they leave too.
// call: the one that failed.
Status EngineTeam::break_team(const Status& cause, const CallInFlight& call) {
  if (cause.code() == Code::memory) process_.reserve.release();
  if (blocking_.by) blocking_.by->cancel();
  broken_ = cause;
  if (!tell(cause, call)) {
    process_.reserve.release();
    // (If that fails, too, peers over links can't be told.)
    if (!tell(cause, call) && shm_) shm_->abort("out of memory");
  }
  if (blocking_.by) failures_.await_quiet(*blocking_.by);
  return broken_;
}

// (Where operands must always be bracketed alike, plans have the rules' brackets.)
const Algorithm* EngineTeam::choose_nonblocking(const Call& call, bool has_cells) {
  Selection& selection = decider_.selection();
  const Algorithm* const chosen = selection.choose(call, false);
  const bool in_arena = chosen && has_cells && can_use_shm(call) &&
                        !selection.is_forced(call.collective) && !process_.knobs.reproducible;
  if (in_arena && FlatInFlight::serves(call, size()))
    return find_algorithm(call.collective, "flat");
  if (in_arena && shm_->traits().cma && GetInFlight::serves(call))
    return find_algorithm(call.collective, "fetch");
  return chosen && chosen->means() == Means::cells ? chosen->beside : chosen;
}

std::unique_ptr<NewTeam> make_new_team(Process& process, std::string name, Rank rank, TeamId id,
                                       std::vector<Peer> peers, std::vector<uint32_t> hosts) {
  return std::make_unique<EngineTeam>(process, std::move(name), rank, id, std::move(peers),
                                      std::move(hosts));
}

}  // namespace sluice
