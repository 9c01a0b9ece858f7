// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/communicator.h"

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
namespace {

// While it exists, calls that MPI or its callbacks make on this thread bypass Sluice.
class Inside {
 public:
  Inside() { this_thread.inside = true; }
  ~Inside() { this_thread.inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

}  // namespace

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
  rounds_.reset();
  offload_.reset();
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

void Communicator::give_up() {
  if (is_mpis()) return;
  broken_ = no_memory_;
  others_may_wait_ = true;
}

void Communicator::leave_to_mpi() { end_team(Owner::mpi); }

void Communicator::end_team(Owner next) {
  for (auto& cache : last_) cache.reset();
  last_algorithm_ = nullptr;
  rounds_.reset();
  offload_.reset();
  way_ = {};  // (MPI's call in a trial may have failed: its error handler may be calling this)
  aside_ = {};
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
  rounds_ = DeviceRounds::make(*team_, runtime_.device_slabs(), runtime_.process().knobs,
                               bootstrap.name());
  offload_ = Offload::make(*team_, runtime_.device_groups(), runtime_.process().knobs,
                           nccl_hint(hints_), bootstrap.name());
  return {};
}

// On return this rank has taken part in the call, or has told its peers that it cannot, even if it
// lacks memory. Otherwise ranks would number later calls differently.
bool Communicator::perform(const char* function, Function row, const Arguments& arguments,
                           Exchange* exchange, int* result) {
  Status status = broken_;
  {
    const Inside inside;
    try {
      if (status.ok() && !carry(function, row, arguments, exchange, &status)) return false;
    } catch (const std::bad_alloc&) {
      runtime_.process().reserve.release();
      status = team_ ? team_->fail_call(no_memory_) : no_memory_;
    }
    if (!status.ok() && others_may_wait_) report_failed_rank(function);
  }
  *result = status.ok() ? MPI_SUCCESS : fail(function, status);
  return true;
}

bool Communicator::carry(const char* function, Function row, const Arguments& arguments,
                         Exchange* exchange, Status* status) {
  if (owner_ == Owner::undecided) *status = form_team(function);
  if (!status->ok()) return true;
  if (!team_) return false;
  if (!exchange) {
    *status = team_->fail_call({Code::memory, std::string(function) + ": no memory for its types"});
    return true;
  }
  bool was_asked = false;
  const bool has_others = rounds_ || offload_;
  if (has_others && carry_elsewhere(*exchange, &was_asked, status)) return true;
  if (way_.by == Way::By::mpi_then_sluice) {
    *status = team_->fail_call({Code::internal, "an error handler has left a trial call of MPI's"});
    return true;
  }
  if (Status found = team_->find_way(exchange->call, &way_); !found.ok()) {
    *status = std::move(found);
    return true;
  }
  const Status& refusal = exchange->refusal;
  if (!refusal.ok() && way_.by != Way::By::mpi) {
    *status = team_->fail_call(refusal.with(function));
    return true;
  }
  const bool may_keep = !was_asked && !way_.takes_part && refusal.ok();
  if (!go(function, *exchange, status)) {
    if (may_keep && !awaits_mpi()) keep(function, row, arguments, *exchange);
    return false;
  }
  // (A call that is replayed has no vote.)
  if (status->ok() && may_keep) keep(function, row, arguments, *exchange);
  return true;
}

// Goes the call's way, as far as it is Sluice's. False if MPI is to go on.
bool Communicator::go(const char* function, Exchange& exchange, Status* status) {
  using By = Way::By;
  last_algorithm_ = way_.by == By::mpi || way_.by == By::sluice_then_mpi ? nullptr : way_.algorithm;
  if (way_.by != By::sluice) [[unlikely]] {
    if (!prepare_for_mpi(exchange, status)) return true;
    if (way_.by == By::sluice_then_mpi && !warm(function, exchange, status)) return true;
    way_.begin();
    if (way_.begins_with_mpi()) return false;
  } else {
    way_.begin();
  }
  *status = run(function, *way_.algorithm, exchange);
  if (!status->ok()) return true;
  way_.end();
  if (way_.by == By::sluice) return true;
  *status = restore_operand(exchange);
  if (way_.is_counted) way_.began = Way::Clock::now();
  return !status->ok();
}

// False if it failed.
bool Communicator::prepare_for_mpi(const Exchange& exchange, Status* status) {
  left_to_mpi_ = exchange.call.collective;
  bytes_left_to_mpi_ = exchange.call.bytes;
  warming_result_ = MPI_SUCCESS;
  if (way_.is_by_both()) *status = save_operand(exchange);
  if (way_.by == Way::By::mpi_then_sluice) aside_ = exchange;
  return status->ok();
}

// Only an operand in the output's memory is overwritten by whoever does the call first.
Status Communicator::save_operand(const Exchange& exchange) {
  if (!exchange.in_place) return {};
  further_operands_.resize(exchange.others.size());
  Status status = operand_.save(exchange.input, *team_);
  auto operand = further_operands_.begin();
  for (const Side& side : exchange.others) {
    if (status.ok()) status = operand->save(side, *team_);
    ++operand;
  }
  return status.ok() ? status : team_->fail_call(status);
}

Status Communicator::restore_operand(const Exchange& exchange) {
  if (!exchange.in_place) return {};
  Status status = operand_.restore(exchange.input, *team_);
  auto operand = further_operands_.begin();
  for (const Side& side : exchange.others) {
    if (status.ok()) status = operand->restore(side, *team_);
    ++operand;
  }
  further_operands_.clear();
  return status.ok() ? status : team_->fail_call(status);
}

Status Communicator::put_operand_back(const Exchange& exchange) {
  if (!exchange.in_place) return {};
  Status status = operand_.put_back(exchange.input, *team_);
  auto operand = further_operands_.begin();
  for (const Side& side : exchange.others) {
    if (status.ok()) status = operand->put_back(side, *team_);
    ++operand;
  }
  return status.ok() ? status : team_->fail_call(status);
}

// Does Sluice's part of a trial made aside for the first time. False if it failed.
bool Communicator::warm(const char* function, const Exchange& exchange, Status* status) {
  way_.is_to_warm = false;
  Exchange copy = exchange;  // running it writes into its views
  *status = run(function, *way_.algorithm, copy);
  if (status->ok()) *status = put_operand_back(exchange);
  return status->ok();
}

// (Whatever has failed on this rank, the others wait for it in MPI. `finish_aside` tells them.)
bool Communicator::repeats_for_mpi(int result) {
  if (!std::exchange(way_.is_to_warm, false)) return false;
  warming_result_ = result;
  const Inside inside;
  try {
    (void)put_operand_back(aside_);
  } catch (const std::bad_alloc&) {
    runtime_.process().reserve.release();
    (void)team_->fail_call(no_memory_);
  }
  way_.begin();
  return true;
}

int Communicator::finish_for_mpi(const char* function, int result) {
  if (result == MPI_SUCCESS) result = std::exchange(warming_result_, MPI_SUCCESS);
  if (way_.is_counted) team_->count_mpi(left_to_mpi_, bytes_left_to_mpi_, way_.began);
  way_.is_counted = false;
  if (result == MPI_SUCCESS) way_.end();
  way_.is_timed = false;
  if (std::exchange(way_.by, Way::By::mpi) != Way::By::mpi_then_sluice) return result;
  Status status;
  {
    const Inside inside;
    try {
      status = finish_aside(function, result);
    } catch (const std::bad_alloc&) {
      runtime_.process().reserve.release();
      status = team_->fail_call(no_memory_);
    }
  }
  if (result != MPI_SUCCESS) return result;
  return status.ok() ? MPI_SUCCESS : fail(function, status);
}

// (An error of MPI's on this rank is told to the others, which go on by Sluice.)
Status Communicator::finish_aside(const char* function, int result) {
  Exchange exchange = std::exchange(aside_, {});
  if (result != MPI_SUCCESS) {
    return team_->fail_call({Code::internal, "MPI's own function has failed in a trial"});
  }
  Status status = restore_operand(exchange);
  return status.ok() ? run(function, *way_.algorithm, exchange) : status;
}

bool Communicator::carry_elsewhere(Exchange& exchange, bool* was_asked, Status* status) {
  const auto ask = [&](auto& carrier) {
    if (!carrier || !carrier->is_eligible(exchange.call)) return false;
    *was_asked = true;
    if (!exchange.refusal.ok()) {
      *status = team_->fail_call(exchange.refusal);
      return true;
    }
    auto result = carrier->carry(exchange, input_, output_);
    if (!result) return false;
    last_algorithm_ = &carrier->algorithm(exchange.call.collective);
    *status = std::move(*result);
    return true;
  };
  return ask(rounds_) || ask(offload_);
}

void Communicator::keep(const char* function, Function row, const Arguments& arguments,
                        const Exchange& exchange) {
  auto& last = last_[static_cast<size_t>(row)];
  if (!last) last.reset(new (std::nothrow) CallCache);
  if (last) last->keep(function, arguments, exchange, way_, size_);
}

Communicator::Replay Communicator::replay_by_mpi(CallCache& last) {
  if (!broken_.ok() || !last.lease.take_for_mpi()) return Replay::refused;
  last_algorithm_ = nullptr;
  return Replay::by_mpi;
}

Communicator::Replay Communicator::replay(CallCache& last, const Buffers& buffers, int* result) {
  if (!last.put_on(buffers)) return Replay::refused;
  if (!last.lease.take()) return replay_by_mpi(last);
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
  if (offload_) offload_->abandon();
  if (!reported_) log(Level::error, "%s: %s", function, status.message().c_str());
  reported_ = true;
  return raise_error(handle_, status);
}

}  // namespace sluice
