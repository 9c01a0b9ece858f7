// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/communicator.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "src/base/log.h"
#include "src/memory/device_reduction.h"
#include "src/mpi/bootstrap.h"
#include "src/mpi/errors.h"
#include "src/mpi/runtime.h"
#include "src/mpi/thread_state.h"
#include "src/mpi/user_operation.h"

namespace sluice {
Communicator::Communicator(MPI_Comm handle, Runtime& runtime) : handle_(handle), runtime_(runtime) {
  int rank = 0, size = 0;
  real().Comm_test_inter(handle, &is_inter_);
  real().Comm_rank(handle, &rank);
  real().Comm_size(handle, &size);
  rank_ = static_cast<Rank>(rank);
  size_ = static_cast<Rank>(size);
  if (is_mpis()) owner_ = Owner::mpi;
}

Communicator::~Communicator() {
  for (auto& cache : last_) cache.reset();
  carriers_.reset();
  if (team_) Team::retire(runtime_.process(), std::move(team_));
}

// Ranks may give different hints; all do the same. Each one's next call is a team set-up, in which
// a rank whose communicator has failed must tell the others.
void Communicator::give_hints(const Hints& hints) {
  for (const auto& [key, value] : hints) hints_[key] = value;
  if (is_mpis()) return;
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
  if (is_mpis()) return;
  broken_ = no_memory_;
  others_may_wait_ = true;
}

void Communicator::leave_to_mpi() { end_team(Owner::mpi); }

void Communicator::end_team(Owner next) {
  for (auto& cache : last_) cache.reset();
  last_algorithm_ = nullptr;
  carriers_.reset();
  in_mpi_ = false;  // (an error handler of MPI's call may be calling this)
  team_.reset();
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
  carriers_ = Carriers::make(*team_, runtime_, hints_, bootstrap.name());
  return {};
}

// On return this rank has taken part in the call, or has told its peers that it cannot, even if it
// lacks memory. Otherwise ranks would number later calls differently.
Communicator::Performed Communicator::perform(const char* function, Function row,
                                              const Arguments& arguments, Exchange* exchange,
                                              HandedOver* handed, int* result) {
  Status status = broken_;
  {
    const Inside inside;
    auto performed = Performed::done;
    try {
      if (status.ok()) performed = carry(function, row, arguments, exchange, handed, &status);
    } catch (const std::bad_alloc&) {
      runtime_.process().reserve.release();
      status = team_ ? team_->fail_call(no_memory_) : no_memory_;
    }
    if (performed != Performed::done) return performed;
    if (!status.ok() && others_may_wait_) report_failed_rank(function);
  }
  *result = status.ok() ? MPI_SUCCESS : fail(function, status);
  return Performed::done;
}

Communicator::Performed Communicator::carry(const char* function, Function row,
                                            const Arguments& arguments, Exchange* exchange,
                                            HandedOver* handed, Status* status) {
  if (owner_ == Owner::undecided) *status = form_team(function);
  if (!status->ok()) return Performed::done;
  if (!team_) return Performed::left_to_mpi;
  const auto end_with = [status](Status is) {
    *status = std::move(is);
    return Performed::done;
  };
  if (!exchange) {
    return end_with(
        team_->fail_call({Code::memory, std::string(function) + ": no memory for its types"}));
  }
  in_mpi_ = false;  // (an error handler of MPI's call may have left it, or be making this one)
  std::optional<Carriers::Offer> offer;
  Way way;
  Status decided = carriers_ ? decide(*exchange, &offer.emplace(), &way)
                             : team_->find_way(exchange->call, {}, &way);
  if (!decided.ok()) return end_with(std::move(decided));
  using By = Way::By;
  const Status& refusal = exchange->refusal;
  if (!refusal.ok() && way.by != By::mpi) {
    return end_with(team_->fail_call(refusal.with(function)));
  }
  // (A call that is replayed has no vote.)
  const bool has_votes = offer && offer->is_eligible;
  const bool may_keep = !has_votes && !way.takes_part && !way.is_counted && refusal.ok();
  if (way.by == By::sluice) [[likely]] {
    last_algorithm_ = way.algorithm;
    way.begin();
    *status = Carriers::have(*way.algorithm)
                  ? carriers_->run(*way.algorithm, *exchange, *offer, input_, output_)
                  : run(function, *way.algorithm, *exchange);
    if (!status->ok()) return Performed::done;
    way.end();
    if (may_keep) keep(function, row, arguments, *exchange, way);
    return Performed::done;
  }
  last_algorithm_ = way.by == By::mpi_then_sluice ? way.algorithm : nullptr;
  if (!way.of) {
    if (may_keep) keep(function, row, arguments, *exchange, way);
    return Performed::left_to_mpi;
  }
  if (way.by == By::sluice_then_mpi) try_aside(function, *exchange, way);
  *handed = {way, may_keep};
  return Performed::handed_over;
}

// Who does the call, where carriers are in question. Equal on all ranks.
Status Communicator::decide(Exchange& exchange, Carriers::Offer* offer, Way* way) {
  Status status = carriers_->ask(exchange, exchange.refusal, input_, output_, offer);
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
  runtime_.process().reserve.release();
  (void)team_->fail_call(no_memory_);
}

bool Communicator::enter_mpi(const char* function, Function row, CallByMpi& call, int* result) {
  const Inside inside;
  if (!call.begin()) {
    runtime_.process().reserve.release();
    *result = fail(function, team_->fail_call(call.failure().with(function)));
    return false;
  }
  if (call.may_be_kept()) keep(function, row, call.program(), call.exchange(), call.way());
  in_mpi_ = true;
  handed_over_ = &call;
  return true;
}

bool Communicator::leave_mpi(const char* function, CallByMpi& call, int* result) {
  if (!in_mpi_ || handed_over_ != &call) return false;
  if (call.stage() == CallByMpi::Stage::warming) {
    (void)call.end(*result);
    call.advance();
    return true;
  }
  in_mpi_ = false;
  Status status;
  {
    const Inside inside;
    try {
      status = finish_by_mpi(function, call, *result);
    } catch (const std::bad_alloc&) {
      runtime_.process().reserve.release();
      status = team_->fail_call(no_memory_);
    }
  }
  *result = call.error();
  if (*result == MPI_SUCCESS && !status.ok()) *result = fail(function, status);
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

void Communicator::keep(const char* function, Function row, const Arguments& arguments,
                        const Exchange& exchange, const Way& way) {
  auto& last = last_[static_cast<size_t>(row)];
  if (!last) last.reset(new (std::nothrow) CallCache);
  if (last) last->keep(function, arguments, exchange, way, {rank_, size_});
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
      status = team_->fail_call(no_memory_);
    }
  }
  *result = status.ok() ? MPI_SUCCESS : fail(last.entry, status);
  return Replay::done;
}

// By the device that the data lies on; nothing if that does not do it.
std::optional<Status> Communicator::run_on_device(const char* function, const Algorithm& algorithm,
                                                  Exchange& exchange) {
  if (algorithm.shm || algorithm.cell > 0) return {};
  DeviceReduction reduction(exchange, *team_);
  if (!reduction.suits(runtime_.process().knobs.cuda_reduce_least)) return {};
  reduction.describe(input_, output_);
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
  Placement placement(exchange, input_, output_, *team_);
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

int Communicator::fail(const char* function, const Status& status) {
  broken_ = status;
  if (carriers_) carriers_->abandon();
  if (!reported_) log(Level::error, "%s: %s", function, status.message().c_str());
  reported_ = true;
  return raise_error(handle_, status);
}

}  // namespace sluice
