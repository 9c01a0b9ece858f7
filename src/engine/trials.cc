// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/trials.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <iterator>
#include <limits>
#include <new>

#include "src/base/log.h"
#include "src/base/plain_text.h"
#include "src/engine/routes.h"
#include "src/engine/selection.h"
#include "src/engine/team.h"

namespace sluice {

namespace {

// By how much a call by MPI takes longer than its samples say, in nanoseconds. Handing a call over
// takes some 150, which a settled call by Sluice saves in the call cache. Also, calls by Sluice
// take longer in turns with MPI's than by themselves. (Without this, MPI took over allreduces of 64
// bytes: 0.28 us in place of 0.10.)
constexpr double handover = 500;

// The least cost of a window, in nanoseconds, with that of the calls after it, whose data and code
// have left the caches. So calls of less than a microsecond are tried rarely. (Of 20,000 allreduces
// of 8 bytes, windows every 1024 calls took 8%.)
constexpr int64_t least_overhead = 10000;

int64_t now() { return in_nanoseconds(Way::Clock::now()); }

// Of a vector in the scratch: whole cache lines.
size_t room_for(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Of one rank, as the ranks tell each other.
struct WindowReport {
  int64_t overhead;
  std::array<Sample, Trial::most_candidates * Trial::turns> samples;
};

// Reductions that MPI libraries do as Sluice does, to the bit, of any operands:
// `tests/mpi/test_choice` compares them. (Open MPI 4.1.4 saturates sums of narrow integers with
// AVX, compares MPI_UNSIGNED_LONG as if it were signed and MPI_OFFSET as if it were not, and fails
// in quadruple precision; MPICH 4.0.2 compares all unsigned integers as signed, and its maxima of
// NaNs depend on the order of ranks.)
bool is_right_by_mpi(const Arithmetic& each) {
  const auto [type, op] = each;
  const bool compares = op == Op::min || op == Op::max;
  if (compares) return type == Type::int32;
  if (op != Op::sum && op != Op::prod) return false;
  const bool is_float = type == Type::float32 || type == Type::float64;
  const bool is_complex = type == Type::complex64 || type == Type::complex128;
  return is_wide_integer(type) || is_float || (is_complex && op == Op::sum);
}

// Beyond these, MPI does no calls that Sluice could do.
constexpr size_t most_moved = size_t{1} << 31, most_reduced = size_t{64} << 20;

bool has_a_common_size(const Call& call) {
  return has_common_size(call.collective) && call.collective != Collective::barrier;
}

// Equal on all ranks.
bool may_be_mpis(const Call& call) {
  if (!has_a_common_size(call)) return true;
  const size_t most = call.reduction.kernel ? most_reduced : most_moved;
  if (call.bytes == 0 || call.bytes >= most) return false;
  if (!call.reduction.kernel) return true;
  return call.reduction.arithmetic && is_right_by_mpi(*call.reduction.arithmetic);
}

}  // namespace

std::optional<uint8_t> CallClass::number_of(const Algorithm& candidate) const {
  const auto at = std::ranges::find(candidates, &candidate);
  if (at == candidates.end()) return {};
  return static_cast<uint8_t>(at - candidates.begin());
}

void CallLease::begin(CallClass* of) {
  end();
  if (!of) {
    left_ = unlimited;
    return;
  }
  if (of->lease) of->lease->end();
  granted_ = of->trial.uneventful();
  left_ = granted_ + 1;
  of_ = of;
  of->lease = this;
}

bool CallLease::refuse_for_mpi() {
  left_for_mpi_ = 1;
  end();
  return false;
}

void CallLease::end() {
  if (of_) {
    of_->trial.skip(granted_ - (left_ - 1) - (left_for_mpi_ - 1));
    of_->lease = nullptr;
    of_ = nullptr;
  }
  left_ = left_for_mpi_ = 1;
}

void Way::go_by(uint8_t candidate) {
  const Algorithm* const route = of->candidates[candidate];
  by = route == &routes::mpi ? By::mpi : By::sluice;
  if (by == By::sluice) algorithm = route;
}

void Way::take_sample() {
  Sample& sample = of->samples[place];
  sample.entry = in_nanoseconds(began);
  const int64_t duration = now() - sample.entry;
  sample.duration = static_cast<float>(duration + pretended.count());
  if (of->trial.state() == Trial::State::waiting) of->spent += duration;
  is_timed = false;
}

Trials::~Trials() {
  for (const auto& each : classes_) {
    if (each->lease) each->lease->end();
  }
}

Trials::Trials(Team& team, const Selection& selection, Rank ranks, std::span<const uint32_t> hosts,
               const Knobs& knobs, const std::string& name)
    : team_(team),
      selection_(selection),
      knobs_(knobs),
      name_(name),
      hosts_(hosts),
      are_on_(knobs.choice != "rules" && knobs.tls == "off" && ranks > 1) {}

// Whether its bits may depend on who does the call; otherwise a candidate is tried aside, if at
// all.
bool Trials::may_change_bits(const Call& call) const {
  return !is_exact(call) && knobs_.choice != "free";
}

bool Trials::may_be_tried(const Call& call) const {
  return !call.stays && !(knobs_.reproducible && call.reduction.kernel);
}

// (NCCL does calls that it can't be tried in: the user has asked for it.)
Challengers Trials::find_on_devices(const Call& call, const CarrierSet& able,
                                    const Algorithm& ruled) const {
  const auto [ipc, nccl] = able;
  const bool may_change = may_change_bits(call);
  if (nccl && may_change) return {};
  Challengers found;
  found.carriers = {ipc && (!may_change || is_left_to_right(ruled, team_.size())), nccl};
  found.mpi = may_be_mpis(call) && !(found.are_on_device() && may_change);
  return found;
}

bool Trials::tries(const Call& call, Carrier carrier, const Algorithm& ruled) const {
  CarrierSet able = {};
  able[static_cast<size_t>(carrier)] = true;
  return may_be_tried(call) && find_on_devices(call, able, ruled).are_on_device();
}

uint32_t Trials::kind_of(const Call& call) {
  const auto octave = static_cast<uint32_t>(std::bit_width(call.bytes));
  return static_cast<uint32_t>(call.collective) << 16 | octave << 8 | (is_exact(call) ? 4U : 0U) |
         (Selection::is_ordered(call) ? 2U : 0U) | (call.ragged ? 1U : 0U);
}

uint32_t Trials::key_of(const Call& call, const Challengers& challengers) {
  const auto [ipc, nccl] = challengers.carriers;
  return kind_of(call) | (challengers.mpi ? 32U : 0U) | (nccl ? 16U : 0U) | (ipc ? 8U : 0U);
}

CallClass* Trials::find_class(uint32_t key) const {
  for (const auto& each : classes_) {
    if (each->key == key) return each.get();
  }
  return nullptr;
}

CallClass& Trials::find_class(const Call& call, const Challengers& challengers,
                              const Algorithm& ruled) {
  CallClass* const found = find_class(key_of(call, challengers));
  if (!found) return make_class(call, challengers, ruled);
  found->candidates[found->ruled] = &ruled;
  return *found;
}

bool Trials::go_without(const CarrierSet& able, const Call& call, const Algorithm& ruled) const {
  if (!may_be_tried(call)) return false;
  const Challengers challengers = find_on_devices(call, able, ruled);
  if (!challengers.are_on_device()) return false;
  const CallClass* const of = find_class(key_of(call, challengers));
  if (!of || of->trial.state() == Trial::State::waiting) return false;
  const Algorithm* const choice = of->candidates[of->known.value_or(of->trial.choice())];
  return !routes::is_carriers(*choice) && of->trial.uneventful() > 0;
}

// The candidate that an earlier job has found to be the fastest; nullptr: it is not known.
const Algorithm* Trials::find_known(uint32_t key, const Call& call, const Algorithm& ruled) const {
  const std::string_view earlier = earlier_ ? earlier_->find(describe(key)) : "";
  if (earlier.empty()) return nullptr;
  if (const Algorithm* const route = routes::find(earlier)) return route;
  const Algorithm* const other = find_algorithm(call.collective, earlier);
  return other && selection_.is_able(*other, call, ruled) ? other : &ruled;
}

// For the first call of the class, which is the same on all ranks.
CallClass& Trials::make_class(const Call& call, const Challengers& challengers,
                              const Algorithm& ruled) {
  const uint32_t key = key_of(call, challengers);
  const bool is_on_device = challengers.are_on_device(), may_change = may_change_bits(call);
  const auto [ipc, nccl] = challengers.carriers;
  std::vector<const Algorithm*> candidates;
  if (nccl) candidates.push_back(&routes::nccl);
  candidates.push_back(&ruled);
  if (challengers.mpi) candidates.push_back(&routes::mpi);
  if (ipc) candidates.push_back(&routes::ipc);
  const Algorithm* const known = find_known(key, call, ruled);
  if (known && std::ranges::count(candidates, known) == 0) candidates.push_back(known);
  if (!known && !is_on_device && knobs_.choice == "free") {
    std::ranges::copy(selection_.find_rivals(call, ruled), std::back_inserter(candidates));
  }
  const bool is_free = is_on_device || !may_change;
  const Trial trial(static_cast<uint8_t>(candidates.size()),
                    is_free ? Trial::Needs::nothing : Trial::Needs::memory);
  CallClass& made = *classes_.emplace_back(new CallClass{key, trial});
  std::ranges::copy(candidates, made.candidates.begin());
  made.ruled = nccl ? 1 : 0;
  made.is_on_device = is_on_device;
  made.is_interchangeable = is_free;
  if (known) made.known = made.number_of(*known);
  if (known) made.trial.close();
  return made;
}

Outcomes::Class Trials::describe(uint32_t key) const {
  return {.collective = static_cast<Collective>(key >> 16),
          .ranks = team_.size(),
          .hosts = count_hosts(hosts_),
          .per_host = most_per_host(hosts_),
          .octave = key >> 8 & 0xff,
          .ordered = (key & 2) != 0,
          .ragged = (key & 1) != 0,
          .exact = (key & 4) != 0,
          .challengers = {{(key & 8) != 0, (key & 16) != 0}, (key & 32) != 0}};
}

// (What was found out is lost without memory.)
void Trials::hand_over(const TeamId& team, Outcomes* outcomes) const try {
  for (const auto& each : classes_) {
    const Trial& trial = each->trial;
    const auto& times = trial.last_result().by_candidate;
    const bool is_known = times[trial.choice()].is_known();
    if (!each->known && !is_known) continue;
    Outcomes::Outcome outcome;
    const uint8_t choice = each->known.value_or(trial.choice());
    outcome.choice = choice == each->ruled ? leave_to_rules : each->candidates[choice]->name;
    outcome.from_file = each->known.has_value();
    if (!outcome.from_file) {
      const auto mpi = each->number_of(routes::mpi);
      outcome.ruled = each->candidates[each->ruled]->name;
      outcome.by_rules = times[each->ruled].high;
      if (mpi) outcome.by_mpi = times[*mpi].high;
      outcome.by_other = times[choice].high;
      outcome.windows = each->windows;
    }
    outcomes->note(knobs_.counts_calls() ? name_ : std::string(), team, describe(each->key),
                   outcome);
  }
} catch (const std::bad_alloc&) {
}

Status Trials::find_way(const Call& call, const CarrierSet& able, Way* way) {
  if (!may_be_tried(call)) return {};
  Challengers challengers;
  if (able == CarrierSet{}) [[likely]] {
    challengers.mpi = may_be_mpis(call);
  } else {
    challengers = find_on_devices(call, able, *way->algorithm);
  }
  if (challengers.are_none()) return {};
  CallClass& of = find_class(call, challengers, *way->algorithm);
  if (of.lease) of.lease->end();
  while (of.trial.due() != Trial::Due::nothing) {
    if (Status status = agree(call, of); !status.ok()) return status;
  }
  const Trial::Next next = of.trial.next(call.bytes);
  way->of = &of;
  way->go_by(of.known.value_or(next.candidate));
  if (next.takes_part) take_part(call, next, way);
  return {};
}

// (Not if it is known who does the class's calls.)
void Trials::take_part(const Call& call, const Trial::Next& next, Way* way) const {
  CallClass& of = *way->of;
  way->takes_part = true;
  way->place = next.place;
  way->is_timed = next.is_timed;
  const auto weight = static_cast<float>(call.weight);
  if (next.is_timed) of.samples[next.place] = {0, Sample::unknown, weight};
  if (next.candidate == of.trial.choice() || of.is_interchangeable) return;
  if (!next.is_timed) return way->go_by(of.trial.choice());
  const bool is_mpis = of.candidates[next.candidate] == &routes::mpi;
  way->by = is_mpis ? Way::By::mpi_then_sluice : Way::By::sluice_then_mpi;
  way->aside = {scratch_.get() + room_for(of.trial.longest_of_window(call.bytes)), scratch_.get()};
  of.had_asides = true;
}

void Trials::give_memory_back() {
  for (const auto& each : classes_) each->trial.lose_memory();
  free_scratch_if_unused();
}

void Trials::abandon_memory() {
  (void)scratch_.release();
  scratch_bytes_ = 0;
}

bool Trials::reserve_scratch(size_t bytes) {
  if (bytes <= scratch_bytes_) return true;
  std::unique_ptr<std::byte[]> larger(new (std::nothrow) std::byte[bytes]);
  if (!larger) return false;
  scratch_ = std::move(larger);
  scratch_bytes_ = bytes;
  return true;
}

void Trials::free_scratch_if_unused() {
  const auto uses = [](const auto& each) { return each->trial.holds_memory(); };
  if (std::ranges::any_of(classes_, uses)) return;
  scratch_.reset();
  scratch_bytes_ = 0;
}

Status Trials::agree(const Call& call, CallClass& of) {
  switch (of.trial.due()) {
    case Trial::Due::nothing:
      break;
    case Trial::Due::time_spent:
      return agree_on_time_spent(call, of);
    case Trial::Due::memory:
      return agree_on_memory(call, of);
    case Trial::Due::window:
      return agree_on_window(call, of);
  }
  return {};
}

namespace {

// Gathers all ranks' records.
template <typename Record>
Status gather(Team& team, const Call& call, const Record& mine, std::vector<Record>* all) {
  all->assign(team.size(), Record{});
  return team.exchange(call, std::as_bytes(std::span(&mine, 1)),
                       std::as_writable_bytes(std::span(*all)));
}

// What a rank says before trials begin.
struct Start {
  int64_t spent;
  int64_t may_try;
};

}  // namespace

Status Trials::agree_on_time_spent(const Call& call, CallClass& of) {
  std::vector<Start> all;
  const Start mine{of.spent, knobs_.timeout > 0 ? 0 : 1};
  if (Status status = gather(team_, call, mine, &all); !status.ok()) return status;
  const int64_t most = std::max<int64_t>(0, std::ranges::max(all, {}, &Start::spent).spent);
  const bool may_try =
      std::ranges::all_of(all, [](const Start& each) { return each.may_try == 1; });
  may_try ? of.trial.learn_time_spent(std::chrono::nanoseconds(most)) : of.trial.close();
  return {};
}

// Reserves the memory that the window's calls need on this rank, and agrees with the other ranks
// whether all have it. (Untouched memory costs nothing.)
Status Trials::agree_on_memory(const Call& call, CallClass& of) {
  const auto mine =
      static_cast<std::byte>(reserve_scratch(2 * room_for(of.trial.longest_of_window(call.bytes))));
  std::vector<std::byte> all;
  if (Status status = gather(team_, call, mine, &all); !status.ok()) return status;
  const bool have_all = std::ranges::all_of(all, [](std::byte has) { return has == std::byte{1}; });
  of.trial.learn_memory(have_all, call.bytes);
  free_scratch_if_unused();
  return {};
}

// (The second part is longer than one exchange, so clocks of several hosts have two to go by. A
// third tells their times. Once a rank has heard all others it needs no more memory: they go on,
// and perhaps into MPI's function, whether it does or not.)
Status Trials::agree_on_window(const Call& call, CallClass& of) {
  const int64_t began = now();
  const uint8_t before = of.trial.choice();
  const WindowReport mine{overhead_, of.samples};
  std::vector<WindowReport> reports(team_.size());
  std::vector<std::span<const Sample>> windows(team_.size());
  std::vector<ClockOffset> clocks(team_.spans_hosts() ? team_.size() : 0);
  const size_t bytes = offsetof(WindowReport, samples) + of.trial.sample_count() * sizeof(Sample);
  std::vector<std::byte> all(team_.size() * bytes);
  std::vector<ExchangeTimes> times;
  Status status =
      team_.exchange(call, std::as_bytes(std::span(&mine, 1)).first(bytes), all, &times);
  if (!status.ok()) return status;
  int64_t overhead = overhead_;
  for (size_t rank = 0; rank < team_.size(); ++rank) {
    std::memcpy(&reports[rank], all.data() + rank * bytes, bytes);
    overhead = std::min(overhead, reports[rank].overhead);  // others have waited for the last one
    windows[rank] = reports[rank].samples;
  }
  int64_t reference = reports[0].samples[0].entry;
  if (!clocks.empty()) status = compare_clocks(call, {times[0], times[1]}, clocks, &reference);
  if (!status.ok()) return status;
  const Trial::Result result = judge(of, result_of(of.trial, windows, clocks, reference), overhead);
  of.trial.learn(result);
  ++of.windows;
  of.had_asides = false;
  free_scratch_if_unused();
  const int64_t spent = now() - began;
  overhead_ = overhead_ == 0 ? spent : std::min(overhead_, spent);
  log_window(of, call, result);
  if (of.trial.choice() != before) report(of, call);
  return {};
}

// Draws the conclusions of a window's times for the class. overhead: of the exchanges. Equal on all
// ranks.
Trial::Result Trials::judge(const CallClass& of, Trial::Result times, int64_t overhead) {
  if (const auto mpi = of.number_of(routes::mpi)) {
    Trial::Bounds& by_mpi = times.by_candidate[*mpi];
    by_mpi.low += handover;
    by_mpi.high += handover;
    times.mean[*mpi] += handover;
  }
  times.overhead = static_cast<double>(std::max(overhead, least_overhead));
  // (What was tried aside came on top, and the exchange before.)
  if (of.had_asides) {
    const double usual = std::max(times.by_candidate[of.trial.choice()].high, 0.0);
    times.overhead += times.overhead + Trial::turns * Trial::calls_in_turn * usual;
  }
  return times;
}

// mine: the times of two exchanges. *reference: a time of then, on rank 0's clock.
Status Trials::compare_clocks(const Call& call, const BothTimes& mine,
                              std::span<ClockOffset> clocks, int64_t* reference) {
  const std::vector<ExchangeTimes> none(team_.size());
  std::array exchanges{none, none};
  std::vector<BothTimes> all;
  if (Status status = gather(team_, call, mine, &all); !status.ok()) return status;
  for (size_t rank = 0; rank < team_.size(); ++rank) {
    for (size_t i = 0; i < mine.size(); ++i) exchanges[i][rank] = all[rank][i];
  }
  find_clock_offsets(exchanges, clocks);
  *reference = exchanges[1][0].exit;
  return {};
}

namespace {

// "allreduce of 4000"; "alltoallv on devices", whose ranks know no common size.
std::string name_of(const CallClass& of, const Call& call) {
  std::string text(to_string(call.collective));
  if (call.bytes > 0) text += " of " + format_size(call.bytes);
  return of.is_on_device ? text + " on devices" : text;
}

std::string name_of(const CallClass& of, uint8_t candidate) {
  return routes::describe(of.candidates[candidate]->name);
}

// "Sluice's flat 0.21 to 0.22 us, MPI 0.4 to 0.41 us".
std::string describe_times(const CallClass& of, const Trial::Result& result) {
  std::string text;
  for (uint8_t each = 0; each < of.trial.candidates(); ++each) {
    const Trial::Bounds& bounds = result.by_candidate[each];
    const std::string times =
        significant(bounds.low / 1000, 3) + " to " + significant(bounds.high / 1000, 3) + " us";
    text +=
        (each > 0 ? ", " : "") + name_of(of, each) + " " + (bounds.is_known() ? times : "unknown");
  }
  return text;
}

}  // namespace

// (What is told is lost without memory: the ranks have agreed, and none may fail alone.)
void Trials::log_window(const CallClass& of, const Call& call, const Trial::Result& result) const
    try {
  if (team_.rank() != 0 || !log_shown(Level::debug)) return;
  log(Level::debug, "trial of %s on %s: %s; next %u", name_of(of, call).c_str(), name_.c_str(),
      describe_times(of, result).c_str(), of.trial.uneventful());
} catch (const std::bad_alloc&) {
}

// One rank says it.
void Trials::report(const CallClass& of, const Call& call) const try {
  if (team_.rank() != 0 || !log_shown(Level::info)) return;
  log(Level::info,
      "%s on %s: %s is faster, and does these calls from now on (%s). SLUICE_CHOICE=rules "
      "keeps to the rules, `sluice tune` writes better ones",
      name_of(of, call).c_str(), name_.c_str(), name_of(of, of.trial.choice()).c_str(),
      describe_times(of, of.trial.last_result()).c_str());
} catch (const std::bad_alloc&) {
}

}  // namespace sluice
