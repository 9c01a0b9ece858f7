// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/communicator.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "src/base/log.h"
#include "src/memory/device_reduction.h"
#include "src/mpi/bootstrap.h"
#include "src/mpi/communicators.h"
#include "src/mpi/errors.h"
#include "src/mpi/runtime.h"
#include "src/mpi/thread_state.h"
#include "src/mpi/user_operation.h"

namespace sluice {
Communicator::Communicator(MPI_Comm handle, Runtime& runtime) : handle_(handle), runtime_(runtime) {
  int is_inter = 0, rank = 0, size = 0;
  real().Comm_test_inter(handle, &is_inter);
  real().Comm_rank(handle, &rank);
  real().Comm_size(handle, &size);
  rank_ = static_cast<Rank>(rank);
  size_ = static_cast<Rank>(size);
#ifdef SLUICE_OPEN_MPI
  if (size_ == 1) owner_ = Owner::mpi_always;
#endif
  if (is_inter) owner_ = Owner::mpi_always;
}

Communicator::~Communicator() {
  for (auto& cache : last_) cache.reset();
  carriers_.reset();
  runtime_.pending().note_freed(handle_);
  if (!team_) return;
  if (auto idle = runtime_.pending().adopt(std::move(team_)))
    Team::retire(runtime_.process(), std::move(idle));
}

// Ranks may give different hints; all do the same. Each one's next call is a team set-up, in which
// a rank whose communicator has failed must tell the others.
void Communicator::give_hints(const Hints& hints) {
  for (const auto& [key, value] : hints) hints_[key] = value;
  if (owner_ == Owner::mpi_always) return;
  end_team(Owner::undecided);
  others_may_wait_ = !broken_.ok();
}

// Tells the other ranks, which are in a team set-up, that calls fail here: this call stands where
// their set-up does. Without memory for that, the next call tries again.
void Communicator::report_failed_rank(const char* function) try {
  MpiBootstrap bootstrap(handle_, rank_, size_, name(), function,
                         runtime_.process().knobs.setup_timeout);
  others_may_wait_ = !Team::report_failed_rank(runtime_.process(), bootstrap);
} catch (const std::bad_alloc&) {
  log(Level::error, "no memory to tell others that a communicator's calls fail here");
}

void Communicator::fail_all_calls() {
  if (owner_ == Owner::mpi_always) return;
  broken_ = runtime_.process().no_memory_for_call;
  others_may_wait_ = true;
}

void Communicator::leave_to_mpi() {
  if (owner_ != Owner::mpi_always) end_team(Owner::mpi);
}

void Communicator::end_team(Owner next) {
  for (auto& cache : last_) cache.reset();
  last_algorithm_ = nullptr;
  carriers_.reset();
  in_mpi_ = nullptr;  // (an error handler of MPI's call may be calling this)
  if (team_) runtime_.pending().adopt(std::move(team_)).reset();
  owner_ = next;
}

std::string Communicator::name() const {
  char text[object_name_room] = "";
  int length = 0;
  real().Comm_get_name(handle_, text, &length);
  return *text ? text : "a communicator of " + std::to_string(size_) + " ranks";
}

// May throw std::bad_alloc, but only before this rank has taken part in an exchange.
Status Communicator::form_team(const char* function) {
  others_may_wait_ = true;
  MpiBootstrap bootstrap(handle_, rank_, size_, name(), function,
                         runtime_.process().knobs.setup_timeout);
  auto formed = Team::form(runtime_.process(), bootstrap, bootstrap.name(), &hints_);
  others_may_wait_ = !bootstrap.has_met();
  if (!runtime_.failure().ok()) return runtime_.failure();
  if (!formed.ok()) return formed.status();
  team_ = std::move(*formed);
  owner_ = team_ ? Owner::team : Owner::mpi;
  if (!team_) return {};
  runtime_.note_team(handle_);
  may_be_in_flight_ = runtime_.is_nonblocking_carried() && !leaves_nonblocking(hints_);
  carriers_ = Carriers::make(*team_, runtime_, hints_, bootstrap.name());
  return {};
}

Status Communicator::prepare_team(const char* function) {
  if (broken_.ok() && owner_ == Owner::undecided) {
    try {
      broken_ = form_team(function);
    } catch (const std::bad_alloc&) {
      broken_ = fail_for_memory();
    }
  }
  if (!broken_.ok() && others_may_wait_) report_failed_rank(function);
  return broken_;
}

Status Communicator::renew_team(const char* function) {
  end_team(Owner::undecided);
  return prepare_team(function);
}

// On return this rank has taken part in the call, or has told its peers that it cannot, even if it
// lacks memory. Otherwise ranks would number later calls differently.
PreparedCall::State Communicator::perform(PreparedCall& call) {
  auto state = PreparedCall::State::done;
  Status status;
  {
    const Inside inside;
    try {
      status = carry(call, &state);
    } catch (const std::bad_alloc&) {
      status = fail_for_memory();
    }
    if (state != PreparedCall::State::done) return state;
    if (!status.ok() && others_may_wait_) report_failed_rank(call.row().name);
  }
  return call.done(status.ok() ? MPI_SUCCESS : fail(call.row().name, status));
}

// *state: in, done.
Status Communicator::carry(PreparedCall& call, PreparedCall::State* state) {
  if (!broken_.ok()) return broken_;
  if (owner_ == Owner::undecided) {
    if (Status status = form_team(call.row().name); !status.ok()) return status;
  }
  if (!team_) {
    *state = PreparedCall::State::left_to_mpi;
    return {};
  }
  if (!call.exchange()) {
    return team_->fail_call(Status(Code::memory, "no memory for its types").with(call.row().name));
  }
  Exchange& exchange = *call.exchange();
  in_mpi_ = nullptr;  // (an error handler of MPI's call may have left it, or be making this one)
  std::optional<Carriers::Offer> offer;
  Way& way = call.way();
  Status status = carriers_ ? decide(exchange, &offer.emplace(), &way)
                            : team_->find_way(exchange.call, {}, &way);
  if (!status.ok()) return status;
  const Status& refusal = exchange.refusal;
  if (!refusal.ok() && way.by != Way::By::mpi) {
    return team_->fail_call(refusal.with(call.row().name));
  }
  // (A call that is replayed has no vote.)
  const bool has_votes = offer && offer->is_eligible;
  const bool may_keep = !has_votes && !way.takes_part && !way.is_counted && refusal.ok();
  if (way.by != Way::By::sluice) [[unlikely]] {
    *state = hand_over(call, may_keep);
    return status;
  }
  last_algorithm_ = way.algorithm;
  way.begin();
  status = offer && routes::is_carriers(*way.algorithm)
               ? carriers_->run(*way.algorithm, exchange, *offer, staging_)
               : run(call.row().name, *way.algorithm, exchange);
  if (!status.ok()) return status;
  way.end();
  if (may_keep) keep(call, exchange, way);
  return status;
}

// MPI does the call, or a part of it.
PreparedCall::State Communicator::hand_over(PreparedCall& call, bool may_keep) {
  Way& way = call.way();
  last_algorithm_ = way.by == Way::By::mpi_then_sluice ? way.algorithm : nullptr;
  if (!way.of) {
    // (A replay would not be counted.)
    if (may_keep && !runtime_.process().knobs.counts_calls()) keep(call, *call.exchange(), way);
    return PreparedCall::State::left_to_mpi;
  }
  if (way.by == Way::By::sluice_then_mpi) try_aside(call.row().name, *call.exchange(), way);
  return call.by_mpi(may_keep);
}

// Who does the call, where carriers are in question. Equal on all ranks.
Status Communicator::decide(Exchange& exchange, Carriers::Offer* offer, Way* way) {
  Status status = carriers_->ask(exchange, exchange.refusal, staging_, offer);
  if (!status.ok()) return status;
  if (offer->named) {
    *way = {.by = Way::By::sluice, .algorithm = offer->named};
  } else {
    status = team_->find_way(exchange.call, offer->able, way);
  }
  offer->hold_for(way->by == Way::By::sluice ? way->algorithm : nullptr);
  return status;
}

// Sluice does a call aside, twice; the second time counts. (Whatever fails, the others go on by
// MPI, and so does this rank. The team is broken then, and later calls fail.)
void Communicator::try_aside(const char* function, const Exchange& exchange, Way& way) try {
  Aside aside(exchange, way.aside);
  if (!aside.is_telling()) way.is_timed = false;
  for (const bool counts : {false, true}) {
    Status status = aside.prepare(*team_);
    if (!status.ok()) return void(team_->fail_call(status.with(function)));
    way.begin();
    status = run(function, *way.algorithm, aside.exchange());
    if (!status.ok()) return;
    if (counts) way.end();
  }
} catch (const std::bad_alloc&) {
  (void)fail_for_memory();
}

bool Communicator::enter_mpi(PreparedCall& call, CallByMpi& part, int* result) {
  const Inside inside;
  if (!part.begin()) {
    runtime_.process().reserve.release();
    const char* const name = call.row().name;
    *result = fail(name, team_->fail_call(part.failure().with(name)));
    return false;
  }
  if (part.may_be_kept()) keep(call, part.exchange(), part.way());
  in_mpi_ = &call;
  return true;
}

bool Communicator::leave_mpi(const PreparedCall& call, CallByMpi& part, int* result) {
  if (in_mpi_ != &call) return false;
  if (part.stage() == CallByMpi::Stage::warming) {
    (void)part.end(*result);
    part.advance();
    return true;
  }
  in_mpi_ = nullptr;
  Status status;
  {
    const Inside inside;
    try {
      status = finish_by_mpi(call.row().name, part, *result);
    } catch (const std::bad_alloc&) {
      status = fail_for_memory();
    }
  }
  *result = part.error();
  if (*result == MPI_SUCCESS && !status.ok()) *result = fail(call.row().name, status);
  return false;
}

// (An error of MPI's in a trial made aside is told to the other ranks, which go on by Sluice.)
Status Communicator::finish_by_mpi(const char* function, CallByMpi& call, int result) {
  Status status = call.end(result);
  const Way& way = call.way();
  Exchange& exchange = call.exchange();
  if (way.is_counted) team_->count_mpi(exchange.call.collective, exchange.call.bytes, way.began);
  if (status.ok()) status = call.failure();
  if (!status.ok()) return team_->fail_call(status.with(function));
  if (!call.is_aside()) return {};
  if (call.error() != MPI_SUCCESS) {
    team_->abandon_trial_memory();
    return team_->fail_call({Code::internal, "MPI's own function has failed in a trial"});
  }
  return run(function, *way.algorithm, exchange);
}

void Communicator::keep(const PreparedCall& call, const Exchange& exchange, const Way& way) {
  auto& last = last_[static_cast<size_t>(call.row().function)];
  if (!last) last.reset(new (std::nothrow) CallCache);
  if (last) last->keep(call.row().name, call.arguments(), exchange, way, {rank_, size_});
}

Communicator::Replay Communicator::replay_by_mpi(CallCache& last) {
  if (!broken_.ok() || !last.lease.use_for_mpi()) return Replay::refused;
  last_algorithm_ = nullptr;
  return Replay::by_mpi;
}

Communicator::Replay Communicator::replay(CallCache& last, const Buffers& buffers, int* result) {
  if (!last.rebind(buffers)) return Replay::refused;
  if (!last.lease.use()) return replay_by_mpi(last);
  last_algorithm_ = last.algorithm;
  Status status;
  {
    const Inside inside;
    try {
      status = team_->run_by(*last.algorithm, last.call);
    } catch (const std::bad_alloc&) {
      status = fail_for_memory();
    }
  }
  *result = status.ok() ? MPI_SUCCESS : fail(last.entry, status);
  return Replay::done;
}

// By the device that the data lies on; nothing if that does not do it.
std::optional<Status> Communicator::run_on_device(const char* function, const Algorithm& algorithm,
                                                  Exchange& exchange) {
  if (algorithm.means() != Means::plan) return {};
  DeviceReduction reduction(exchange, *team_);
  if (!reduction.suits(runtime_.process().knobs.cuda_reduce_least)) return {};
  reduction.describe(staging_);
  if (!reduction.begin(team_->measure(algorithm, exchange.call))) return {};
  Status status = team_->run_by(algorithm, exchange.call);
  if (!status.ok() || exchange.others.empty()) return status;
  status = reduction.finish();
  return status.ok() ? status : team_->fail_call(status.with(function));
}

Status Communicator::run(const char* function, const Algorithm& algorithm, Exchange& exchange) {
  if (!exchange.input.place.is_host()) {
    if (auto status = run_on_device(function, algorithm, exchange)) return *std::move(status);
  }
  std::optional<UserOperation> operation;
  Placement placement(exchange, staging_, *team_);
  Status local = placement.begin();
  if (local.ok() && exchange.user_op) {
    operation.emplace(*exchange.user_op, *datatype_of(exchange.input));
    exchange.call.reduction.context = &*operation;
    local = operation->prepare(exchange.input.total_elements());
  }
  if (local.ok()) {
    if (Status status = team_->run_by(algorithm, exchange.call); !status.ok()) return status;
    if (operation) local = operation->failure();
  }
  if (local.ok()) local = placement.end();
  return local.ok() ? local : team_->fail_call(local.with(function));
}

// Without a team nobody else is in the call.
Status Communicator::fail_for_memory() {
  Process& process = runtime_.process();
  process.reserve.release();
  return team_ ? team_->fail_call(process.no_memory_for_call) : process.no_memory_for_call;
}

// (The error handler may end the job. Other threads may be in calls on other communicators.)
void Communicator::leave_statistics(const char* function) try {
  if (!threads_call_mpi.load(std::memory_order_relaxed)) {
    hand_over_all_counts();
  } else if (team_) {
    team_->hand_over_counts();
  }
  runtime_.note_failure(std::string(function) + ": " + broken_.message());
} catch (const std::bad_alloc&) {
}

int Communicator::fail(const char* function, const Status& status) {
  broken_ = status;
  if (carriers_) carriers_->abandon();
  if (!reported_) log(Level::error, "%s: %s", function, status.message().c_str());
  if (!reported_ && runtime_.process().knobs.counts_in_file()) leave_statistics(function);
  reported_ = true;
  return raise_error(handle_, status);
}

}  // namespace sluice
