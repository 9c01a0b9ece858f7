// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/new_team.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>

#include "collectives/shm/groups.h"
#include "collectives/shm/shm.h"
#include "src/base/log.h"
#include "src/engine/agreement.h"
#include "src/engine/execution.h"
#include "src/engine/long_blocks.h"
#include "src/engine/packing.h"
#include "src/engine/padded_alltoallv.h"
#include "src/engine/schedule.h"
#include "src/engine/shared_arena.h"
#include "src/engine/slots.h"
#include "src/engine/streams.h"

namespace sluice {
namespace {

using Clock = Waiter::Clock;

// How long a rank that gives up waits for its ABORTs to be sent, and for peers that connect to it.
constexpr Clock::duration farewell = std::chrono::milliseconds(500);

// Least bytes of a segment, if an algorithm wants many (Algorithm::segments). Shorter ones cost
// more than they gain.
constexpr size_t least_segment = 4096;

// How often a rank that waits long checks all its channels for an ABORT.
constexpr Clock::duration ask_every = std::chrono::milliseconds(500);

class EngineTeam final : public NewTeam {
 public:
  EngineTeam(Process& process, std::string name, Rank rank, TeamId id, std::vector<Peer> peers,
             std::vector<uint32_t> hosts);
  ~EngineTeam() override;

  Status share(std::unique_ptr<Arena> arena) override;
  void apply(const Hints& hints) override;
  const TeamId& id() const override { return id_; }
  void set_id(const TeamId& id) override {
    id_ = id;
    streams_.set_id(id);
  }
  void set_group_fingerprint(uint64_t group_fingerprint) override {
    group_fingerprint_ = group_fingerprint;
  }
  uint64_t group_fingerprint() const override { return group_fingerprint_; }
  bool retire() override;
  void serve(const std::string& name) override;
  Rank rank() const override { return rank_; }
  Rank size() const override { return streams_.size(); }
  const Algorithm* choose(const Call& call) override {
    return choose(call, arena_ && fits_slot(call.element, size()));
  }
  Status run_by(const Algorithm& algorithm, const Call& call) override;
  Status fail_call(const Status& cause) override;

 private:
  void warn_of_mpi(const Call& call);
  const Selector& selector() const { return own_selector_ ? *own_selector_ : process_.selector; }
  static bool is_ordered(const Call& call) {
    return call.reduction.kernel && !call.reduction.commutative;
  }
  Situation situation_of(const Call& call, bool shm) const;
  const Algorithm* choose(const Call& call, bool shm);
  [[gnu::cold]] const Algorithm* choose_without_slots(const Call& call);
  [[gnu::noinline]] const Algorithm* see_to_slots(const Algorithm& algorithm, const Call& call);
  Status execute(const Algorithm& algorithm, const Call& call);
  [[gnu::cold]] Status execute_counted(const Algorithm& algorithm, const Call& call);
  Status run_plan(const Algorithm& algorithm, const Call& call);
  Status run_padded(const Algorithm& algorithm, const Call& call);
  Status start_plan(const Algorithm& algorithm, const Call& call);
  Status finish_plan();
  Status run_shm(const Algorithm& algorithm, const Call& call);
  class ByLinks;
  Status note_group();
  Status learn_round_trip(const std::vector<ArenaGreeting>& greetings);
  size_t segment_of(const Algorithm& algorithm, size_t bytes) const;
  [[gnu::cold]] Status give_up_shm();
  Status why_no_shm() const;
  Status wait();
  Status wait_for_copy(const IsDone& is_done, const std::string& what) override;
  Status watch(std::chrono::nanoseconds waited, std::span<const Rank> ranks,
               const std::string* copy = nullptr);
  bool is_aborted_in_arena() const { return arena_ && arena_->rounds().is_aborted(); }
  Status give_up(const Status& cause);
  void send_abort(const Status& cause);
  Tally& tally(const Algorithm* algorithm);
  std::string describe_call() const;
  void settle_accounts();

  Process& process_;
  std::string name_;
  const Rank rank_;
  TeamId id_;
  uint64_t group_fingerprint_ = 0;
  const std::vector<uint32_t> hosts_;  // as in Shape
  Streams streams_;
  ScheduleCache schedules_;
  Execution execution_;
  PaddedAlltoallv padded_;
  Waiter waiter_;
  WaitLimits limits_;
  const Clock::duration first_watch_;  // length of a wait before watch() does anything
  const Status no_memory_{Code::memory, "no memory for a call"};  // made while there is memory
  const Call* call_ = nullptr;
  uint32_t number_ = 0;        // of the call, as in Tag::call
  uint32_t earlier_ = 0;       // number_ less the calls of this communicator
  Clock::time_point asked_{};  // when watch() last checked for an ABORT
  Status broken_;
  std::unique_ptr<Arena> arena_;                               // null: none
  std::optional<ArenaWaitPolicy> in_arena_;                    // with an arena
  std::optional<Slots> slots_;                                 // with an arena
  std::optional<Groups> groups_;                               // in it, if there are two
  uint32_t per_processor_ = 1;                                 // most ranks for a processor
  uint32_t round_trip_ = 0;                                    // between two ranks, in nanoseconds
  Scratch cma_scratch_;                                        // operands got by CMA
  std::unique_ptr<OverLinks> links_;                           // with an arena
  const Algorithm* shm_algorithm_ = nullptr;                   // that runs
  LongBlocks long_blocks_;                                     // that go over links
  const std::function<bool()>* is_sound_ = nullptr;            // asked while they do
  std::optional<Selector> own_selector_;                       // with hints
  std::optional<Choices> choices_[collective_count][2][2][2];  // by ordered, ragged and direct
  std::vector<std::pair<const Algorithm*, Tally>> tallies_;
};

EngineTeam::EngineTeam(Process& process, std::string name, Rank rank, TeamId id,
                       std::vector<Peer> peers, std::vector<uint32_t> hosts)
    : process_(process),
      name_(std::move(name)),
      rank_(rank),
      id_(id),
      hosts_(std::move(hosts)),
      streams_(process.endpoint.get(), id, std::move(peers)),
      waiter_(process.endpoint.get(), process.progress_mpi, process.knobs.spin,
              process.oversubscription),
      limits_(process.knobs),
      first_watch_(std::min<Clock::duration>(ask_every, limits_.least())) {}

// Runs the plan on what is long. It is packed already.
class EngineTeam::ByLinks final : public OverLinks {
 public:
  explicit ByLinks(EngineTeam& team) : team_(team) {}

  bool start(size_t shorter) override {
    LongBlocks& blocks = team_.long_blocks_;
    Call packed = *team_.call_;
    packed.input.source = nullptr;
    if (!blocks.leave(packed, team_.rank_, team_.size(), shorter)) {
      return team_.give_up(team_.no_memory_).ok();
    }
    return !blocks.any() || team_.start_plan(*team_.shm_algorithm_->beside, blocks.call()).ok();
  }

  bool finish(const std::function<bool()>& is_sound) override {
    if (!team_.long_blocks_.any()) return true;
    team_.is_sound_ = &is_sound;
    const bool finished = team_.finish_plan().ok();
    team_.is_sound_ = nullptr;
    return finished;
  }

 private:
  EngineTeam& team_;
};

Status EngineTeam::share(std::unique_ptr<Arena> arena) {
  if (!arena) return {};
  arena_ = std::move(arena);
  in_arena_.emplace(waiter_, *arena_, [this](std::chrono::nanoseconds waited, Rank peer) {
    return watch(waited, {&peer, 1});
  });
  slots_.emplace(*arena_);
  links_ = std::make_unique<ByLinks>(*this);
  Status status = note_group();
  if (status.ok()) return status;
  if (!in_arena_->status().ok()) status = in_arena_->status();
  arena_->rounds().abort("rank " + std::to_string(rank_) + ": " + status.message());
  return status;
}

Status EngineTeam::note_group() {
  const std::string& how = process_.knobs.groups;
  const bool domains = how == "auto" && size() >= least_for_groups;
  ArenaGreeting mine;
  if (process_.locate) mine.locality = process_.locate(domains);
  mine.locality.known_per_processor = process_.oversubscription.per_processor();
  mine.tries = process_.knobs.single_copy;
  if (size() == 2) mine.round_trip = process_.round_trips.find(streams_.process(1 - rank_));
  std::vector<ArenaGreeting> greetings;
  std::vector<Locality> localities;
  localities.reserve(size());
  Status status = greet(*arena_, *in_arena_, mine, &greetings);
  if (!status.ok()) return status;
  for (const ArenaGreeting& greeting : greetings) localities.push_back(greeting.locality);
  process_.oversubscription.learn(ranks_per_processor(localities, rank_));
  per_processor_ = most_per_processor(localities);
  if (size() == 2 && per_processor_ == 1) status = learn_round_trip(greetings);
  if (!status.ok()) return status;
  const std::vector<uint32_t> groups = make_groups(how, localities);
  if (groups.empty()) return {};
  groups_.emplace(groups, rank_);
  if (rank_ == 0) {
    log(Level::info, "%s: ranks %s form groups", name_.c_str(), describe_groups(groups).c_str());
  }
  return {};
}

// Once for a pair of processes: both must know it.
Status EngineTeam::learn_round_trip(const std::vector<ArenaGreeting>& greetings) {
  const uint64_t known = greetings[0].round_trip;
  round_trip_ = static_cast<uint32_t>(known);
  if (known != 0 && known == greetings[1].round_trip) return {};
  Rounds& rounds = arena_->rounds();
  if (!measure_round_trip(rounds, *in_arena_, &round_trip_)) return why_not_met(rounds);
  process_.round_trips.learn(streams_.process(1 - rank_), round_trip_);
  log(Level::info, "%s: a flag takes %u ns from one rank to the other and back", name_.c_str(),
      round_trip_);
  return {};
}

void EngineTeam::apply(const Hints& hints) try {
  own_selector_ = process_.selector;
  ::sluice::apply(hints, &*own_selector_);
} catch (const std::bad_alloc&) {
  (void)fail_call(no_memory_);
}

EngineTeam::~EngineTeam() { settle_accounts(); }

void EngineTeam::settle_accounts() {
  for (const auto& [algorithm, tally] : tallies_) {
    process_.statistics.add(name_, algorithm->collective, algorithm->name,
                            algorithm->shm ? "shm" : streams_.carrier(), tally);
  }
  tallies_.clear();
}

bool EngineTeam::retire() {
  settle_accounts();
  execution_.trim();
  padded_.reset();
  cma_scratch_ = {};
  if (slots_ && broken_.ok() && !is_aborted_in_arena()) slots_->give_back();
  return broken_.ok() && !own_selector_ && !is_aborted_in_arena();
}

void EngineTeam::serve(const std::string& name) {
  name_ = name;
  earlier_ = number_;
  call_ = nullptr;
}

Situation EngineTeam::situation_of(const Call& call, bool shm) const {
  return {
      .collective = call.collective,
      .transport = shm ? "shm" : process_.endpoint->name(),
      .ranks = size(),
      .ordered = is_ordered(call),
      .ragged = call.ragged,
      .shm = shm,
      .cma = shm && arena_->rounds().cma() != nullptr,
      .hosts = hosts_,
      .groups = shm && groups_ ? std::span(groups_->of()) : std::span<const uint32_t>(),
      .per_processor = per_processor_,
      .round_trip = round_trip_,
  };
}

const Algorithm* EngineTeam::choose(const Call& call, bool shm) {
  const bool ordered = is_ordered(call);
  auto& choices = choices_[static_cast<uint32_t>(call.collective)][ordered][call.ragged][shm];
  if (!choices) {
    const Situation situation = situation_of(call, shm);
    choices = selector().choices(situation);
    if (const std::string name = selector().passed_over(situation); !name.empty() && rank_ == 0) {
      const bool reproducible = process_.knobs.reproducible && is_reducing(call.collective);
      log(Level::warning, "%s on %s: '%s' can't serve %u ranks%s%s%s; the rules choose another",
          std::string(to_string(call.collective)).c_str(), name_.c_str(), name.c_str(), size(),
          ordered ? " in order" : "", call.ragged ? " with uneven blocks" : "",
          reproducible ? " reproducibly" : "");
    }
  }
  const Algorithm* const algorithm = choices->at(call.bytes);
  if (!algorithm && process_.knobs.reproducible && is_reducing(call.collective)) warn_of_mpi(call);
  return algorithm;
}

void EngineTeam::warn_of_mpi(const Call& call) {
  if (rank_ != 0 || process_.warned_of_mpi.exchange(true)) return;
  log(Level::warning,
      "SLUICE_REPRODUCIBLE: %s on %s is left to MPI by a knob, hint or rule, and MPI may give "
      "other "
      "bits with other ranks or sizes",
      std::string(to_string(call.collective)).c_str(), name_.c_str());
}

Status EngineTeam::run_by(const Algorithm& algorithm, const Call& call) {
  if (!broken_.ok()) return broken_;
  call_ = &call;
  ++number_;
  limits_.begin();
  const Algorithm* by = &algorithm;
  if (algorithm.shm && slots_->concern(algorithm, call.bytes, number_)) {
    by = see_to_slots(algorithm, call);
    if (!by) return broken_;
  }
  Status status = process_.knobs.stats ? execute_counted(*by, call) : execute(*by, call);
  call_ = nullptr;
  return status;
}

// The algorithm for the call: the one given, or one without slots if not all ranks can reserve
// them. Null if the team broke.
const Algorithm* EngineTeam::see_to_slots(const Algorithm& algorithm, const Call& call) {
  const bool needs = needs_slots(algorithm, call.bytes, call.ragged, size());
  in_arena_->begin();
  switch (slots_->prepare(needs, number_, encode_signature(call.collective, call.root), call.bytes,
                          *in_arena_)) {
    case Slots::Answer::go:
      return &algorithm;
    case Slots::Answer::lack:
      return choose_without_slots(call);
    case Slots::Answer::failed:
      break;
  }
  (void)give_up_shm();
  return nullptr;
}

// Never MPI, even if the rules leave the other transport's calls to it: the caller has been told
// that Sluice carries this call.
const Algorithm* EngineTeam::choose_without_slots(const Call& call) try {
  if (const Status why = slots_->take_why(); !why.ok()) {
    static constinit std::atomic<bool> said{false};
    log(said.exchange(true) ? Level::info : Level::warning,
        "no shared memory for long messages on %s, another transport carries them: %s",
        name_.c_str(), why.message().c_str());
  }
  if (const Algorithm* const plan = choose(call, false)) return plan;
  Knobs knobs;
  knobs.reproducible = process_.knobs.reproducible;
  const auto builtin = Selector::make(knobs);
  const Algorithm* plan = nullptr;
  if (builtin.ok()) plan = builtin->choose(situation_of(call, false), call.bytes);
  if (!plan) (void)give_up({Code::internal, "no algorithm serves it without slots"});
  return plan;
} catch (const std::bad_alloc&) {
  (void)give_up(no_memory_);
  return nullptr;
}

// Bytes that this rank sends to all ranks, itself included.
static size_t bytes_sent(const Call& call, Rank ranks) {
  size_t elements = 0;
  for (Rank to = 0; to < ranks; ++to) elements += call.input.block(to).count;
  return elements * call.element;
}

Status EngineTeam::execute_counted(const Algorithm& algorithm, const Call& call) {
  const auto began = Clock::now();
  Status status = execute(algorithm, call);
  Tally& sum = tally(&algorithm);
  ++sum.calls;
  sum.bytes += call.collective == Collective::alltoallv ? bytes_sent(call, size()) : call.bytes;
  sum.nanoseconds += static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - began).count());
  return status;
}

Status EngineTeam::fail_call(const Status& cause) {
  if (!broken_.ok()) return broken_;
  call_ = nullptr;
  ++number_;
  return give_up(cause);
}

Tally& EngineTeam::tally(const Algorithm* algorithm) {
  for (auto& [known, sum] : tallies_) {
    if (known == algorithm) return sum;
  }
  return tallies_.emplace_back(algorithm, Tally{}).second;
}

Status EngineTeam::execute(const Algorithm& algorithm, const Call& call) {
  if (algorithm.shm) return run_shm(algorithm, call);
  return algorithm.cell > 0 ? run_padded(algorithm, call) : run_plan(algorithm, call);
}

Status EngineTeam::run_shm(const Algorithm& algorithm, const Call& call) {
  shm_algorithm_ = &algorithm;
  ShmCall shm_call{
      .root = call.root,
      .element = call.element,
      .reduction = call.reduction,
      .input = call.input,
      .output = call.output,
      .groups = groups_ ? &*groups_ : nullptr,
      .in_turns = per_processor_ > 1,
      .scratch = {},
      .links = *links_,
  };
  if (algorithm.needs.cma && call.reduction.kernel) {
    if (!cma_scratch_.reserve(2 * ShmCall::scratch_half)) return give_up(no_memory_);
    shm_call.scratch = {cma_scratch_.data(), 2 * ShmCall::scratch_half};
  }
  if (call.input.source || call.output.source) {
    if (Status status = pack_all(call, size()); !status.ok()) return give_up(status);
  }
  in_arena_->begin();
  Rounds& rounds = arena_->rounds();
  rounds.begin(encode_signature(call.collective, call.root), call.bytes, &*in_arena_);
  // A rank that aborted may have left the call, so data that was fetched from it may be anything.
  const bool good =
      algorithm.shm(rounds, shm_call) && !(algorithm.needs.cma && rounds.is_aborted());
  if (!good) return broken_.ok() ? give_up_shm() : broken_;
  return {};
}

Status EngineTeam::give_up_shm() { return give_up(why_no_shm()); }

Status EngineTeam::why_no_shm() const {
  const Rounds& rounds = arena_->rounds();
  if (const std::string cause = rounds.cause(); !cause.empty()) return {Code::aborted, cause};
  if (const auto& other = rounds.disagreement()) {
    const uint32_t signature = encode_signature(call_->collective, call_->root);
    if (other->about_own) {
      return Status{Code::mismatch,
                    "it expects " + std::to_string(other->bytes) + " bytes where this rank sends " +
                        std::to_string(other->expected) + ": counts or datatypes differ"}
          .with(streams_.describe(other->rank));
    }
    return describe_mismatch({signature, other->expected}, {other->signature, other->bytes})
        .with(streams_.describe(other->rank));
  }
  if (const auto& move = rounds.failed_move()) {
    return why_not_moved(*move).with(streams_.describe(move->rank));
  }
  const Status& status = in_arena_->status();
  return status.code() == Code::peer_lost ? status.with(streams_.describe(in_arena_->rank()))
                                          : status;
}

// Bytes of a segment; equal on all ranks. Two ranks forward nothing, so longer segments save system
// calls (an allreduce of 4 MB over loopback TCP takes 0.75 of the time).
size_t EngineTeam::segment_of(const Algorithm& algorithm, size_t bytes) const {
  const size_t knob = process_.knobs.segment;
  const size_t most = std::min(size() > 2 ? knob : 4 * knob, process_.endpoint->caps().max_message);
  if (algorithm.segments == 1) return most;
  return std::min(most, std::max(bytes / algorithm.segments, least_segment));
}

Status EngineTeam::run_plan(const Algorithm& algorithm, const Call& call) {
  const Status status = start_plan(algorithm, call);
  return status.ok() ? finish_plan() : status;
}

// Each of the two exchanges needs its own call number, on all ranks.
Status EngineTeam::run_padded(const Algorithm& algorithm, const Call& call) try {
  if (padded_.are_left_out()) return run_plan(*algorithm.beside, call);
  if (!padded_.fill(call, rank_, size(), algorithm.cell)) return give_up(no_memory_);
  if (Status status = why_not_packed(call); !status.ok()) return give_up(status);
  Status status = run_plan(algorithm, padded_.cells());
  if (!status.ok()) return status;
  ++number_;
  ++earlier_;
  Rank rank = 0;
  status = padded_.take(&rank);
  if (!status.ok()) return give_up(status.with(streams_.describe(rank)));
  return padded_.rest().any() ? run_plan(*algorithm.beside, padded_.rest().call()) : status;
} catch (const std::bad_alloc&) {
  return give_up(no_memory_);
}

// Does all that can fail for lack of memory, before anything is sent.
Status EngineTeam::start_plan(const Algorithm& algorithm, const Call& call) try {
  const Shape shape{rank_, size(), 0, static_cast<uint32_t>(process_.knobs.radix), hosts_};
  const Schedule* schedule = schedules_.get(&algorithm, call.root, shape);
  const Status status =
      execution_.start(*schedule, call, number_, segment_of(algorithm, call.bytes), streams_);
  return status.ok() ? status : give_up(status);
} catch (const std::bad_alloc&) {
  return give_up(no_memory_);
}

Status EngineTeam::finish_plan() try {
  const Status status = wait();
  return status.ok() ? status : give_up(status);
} catch (const std::bad_alloc&) {
  return give_up(no_memory_);
}

Status EngineTeam::wait() {
  waiter_.begin();
  for (;;) {
    switch (execution_.advance()) {
      case Execution::State::done:
        return {};
      case Execution::State::failed:  // perhaps because a rank that aborted has ended
        if (is_aborted_in_arena()) return {Code::aborted, arena_->rounds().cause()};
        if (execution_.failed_here()) return execution_.status();
        return execution_.status().with(streams_.describe(execution_.failed_peer()));
      case Execution::State::busy:
        process_.endpoint->progress();
        break;
      case Execution::State::waiting:
        waiter_.turn();
        if (is_aborted_in_arena()) return {Code::aborted, arena_->rounds().cause()};
        if (Status status = watch(waiter_.waited(), {}); !status.ok()) return status;
    }
  }
}

// Called at every turn of a wait. Warns if the wait gets long; ends it at its deadline or if a rank
// has aborted. ranks: those waited for; if empty, the execution's.
Status EngineTeam::watch(std::chrono::nanoseconds waited, std::span<const Rank> ranks,
                         const std::string* copy) {
  if (waited < first_watch_) return {};
  if (waiter_.now() - asked_ >= ask_every) {
    asked_ = waiter_.now();
    if (is_sound_ && !(*is_sound_)()) return why_no_shm();
    Status aborted = streams_.aborted_by_peers();
    if (!aborted.ok()) return aborted;
  }
  const auto what = [&] {
    if (copy) return *copy;
    return describe_ranks(ranks.empty() ? execution_.waiting_for()
                                        : std::vector<Rank>(ranks.begin(), ranks.end()));
  };
  return limits_.check(waited, what, [this] { return describe_call(); });
}

// (Called by a Packing, also while the execution advances, and after it. What this brings in stays
// in its queue until then. If the team is broken, the copy has little time left.)
Status EngineTeam::wait_for_copy(const IsDone& is_done, const std::string& what) {
  waiter_.begin();
  while (!is_done()) {
    waiter_.turn();
    if (!broken_.ok() && waiter_.waited() > farewell) return broken_;
    if (!broken_.ok()) continue;
    if (is_aborted_in_arena()) return {Code::aborted, arena_->rounds().cause()};
    if (Status status = watch(waiter_.waited(), {}, &what); !status.ok()) return status;
  }
  waiter_.begin();
  return {};
}

std::string EngineTeam::describe_call() const {
  const std::string which = "call " + std::to_string(number_ - earlier_) + " on " + name_;
  if (!call_) return which;
  return describe_signature(encode_signature(call_->collective, call_->root)) + " (" + which + ")";
}

// Breaks the team: withdraws posted operations and tells the peers why, so that they leave too.
Status EngineTeam::give_up(const Status& cause) {
  if (cause.code() == Code::memory) process_.reserve.release();
  execution_.cancel();
  broken_ = cause;
  try {
    send_abort(cause);
  } catch (const std::bad_alloc&) {  // the peers can't be told
  }
  return broken_;
}

// The rank that fails first may have no channels yet: it opens them to all peers.
void EngineTeam::send_abort(const Status& cause) {
  const bool passes_on = cause.code() == Code::aborted;
  if (!passes_on) {
    broken_ = cause.with(describe_call());
    if (!arena_) streams_.open_all(rank_);
  }
  const std::string text =
      passes_on ? cause.message() : "rank " + std::to_string(rank_) + ": " + broken_.message();
  if (arena_) arena_->rounds().abort(text);
  streams_.abort(text);
  waiter_.begin();
  // The program may reuse its memory after this call, so wait (up to `farewell`) for others' puts.
  const auto is_put_to = [&] { return arena_ && arena_->rounds().is_put_to(); };
  while ((!streams_.abort_sent() || is_put_to()) && waiter_.waited() < farewell) waiter_.turn();
}

}  // namespace

std::unique_ptr<NewTeam> make_new_team(Process& process, std::string name, Rank rank, TeamId id,
                                       std::vector<Peer> peers, std::vector<uint32_t> hosts) {
  return std::make_unique<EngineTeam>(process, std::move(name), rank, id, std::move(peers),
                                      std::move(hosts));
}

}  // namespace sluice
