// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/prepared_call.h"

#include <new>
#include <optional>

#include "src/base/log.h"
#include "src/mpi/communicators.h"
#include "src/mpi/errors.h"
#include "src/mpi/host_copy_for_mpi.h"

namespace sluice {
namespace {

// If memory is short, releases the reserve and tries again. (An earlier failure may have used it,
// so it is filled first.)
Communicator* look_up_by_all_means(MPI_Comm handle) {
  Runtime* const runtime = Runtime::get_if_made();
  if (runtime) runtime->process().reserve.fill();
  try {
    return look_up_communicator(handle);
  } catch (const std::bad_alloc&) {
    if (runtime) runtime->process().reserve.release();
  }
  return look_up_communicator(handle);
}

// The state of a communicator on which MPI's error handler may have been called; nullptr if the
// handler has freed the communicator.
Communicator* find_again(MPI_Comm handle) {
  Communicator* const last = last_communicator(handle);
  return last ? last : find_existing_communicator(handle);
}

// While it exists, MPI returns errors of a communicator to Sluice. (Unless another thread sets a
// handler meanwhile.)
class ReturnedErrors {
 public:
  explicit ReturnedErrors(MPI_Comm comm) : comm_(comm) {
    real().Comm_get_errhandler(comm, &handler_);
    real().Comm_set_errhandler(comm, real().errors_return);
  }
  ~ReturnedErrors() {
    MPI_Errhandler now{};
    real().Comm_get_errhandler(comm_, &now);
    if (now == real().errors_return) real().Comm_set_errhandler(comm_, handler_);
    real().Errhandler_free(&now);
    real().Errhandler_free(&handler_);
  }
  ReturnedErrors(const ReturnedErrors&) = delete;
  ReturnedErrors& operator=(const ReturnedErrors&) = delete;

 private:
  const MPI_Comm comm_;
  MPI_Errhandler handler_{};
};

void count_left() {
  if (Runtime* const runtime = Runtime::get_if_made()) {
    runtime->process().statistics.count_left();
  }
}

int call_mpi(const Row& row, const CallByMpi& call, MPI_Comm comm) {
  std::optional<ReturnedErrors> returned;
  if (call.has_sequel()) returned.emplace(comm);
  return (call.is_programs() ? row.call_alike : row.call)(call.arguments());
}

}  // namespace

void FurtherBuffers::attach(Exchange* exchange) {
  sides.clear();
  for (void* const buffer : buffers) {
    Side side = exchange->output;
    side.buffer = buffer;
    const bool has_data = side.bytes() > 0 && may_be_on_device();
    side.place = has_data ? find_place(offset_by(buffer, side.type->start)) : DevicePlace();
    sides.push_back(side);
  }
  exchange->others = sides;
}

// False: MPI does the call, whatever it is.
bool PreparedCall::find_communicator() {
  communicator_ = last_communicator(arguments_.comm);
  if (!communicator_ && is_switched_off()) return false;
  if (!communicator_) communicator_ = look_up_by_all_means(arguments_.comm);
  return communicator_ && !communicator_->is_left_to_mpi();
}

// False: MPI does the call, or has an error for it.
bool PreparedCall::describe() {
  const Position position{communicator_->rank(), communicator_->size()};
  this_thread.passing_datatype = nullptr;
  try {
    if (!row_.describe(arguments_, position, &described_)) return false;
    if (further_) further_->attach(&described_);
  } catch (const std::bad_alloc&) {
    exchange_ = nullptr;
    return true;
  }
  if (is_doubtful(described_) && is_error_of_mpi(described_, row_.attempt)) return false;
  return described_.refusal.ok() || position.size > 1;
}

PreparedCall::State PreparedCall::start() {
  if (is_passing()) return state_ = State::left_to_mpi;
  state_ = try_to_carry();
  const bool has_others = !communicator_ || communicator_->size() > 1;
  if (state_ == State::left_to_mpi && has_others) count_left();
  return state_;
}

PreparedCall::State PreparedCall::try_to_carry() {
  try {
    if (!find_communicator() || !describe()) return State::left_to_mpi;
  } catch (const std::bad_alloc&) {
    exchange_ = nullptr;
  }
  return communicator_ ? communicator_->perform(*this) : fail_without_communicator();
}

PreparedCall::State PreparedCall::fail_without_communicator() {
  communicators_missed.store(true, std::memory_order_relaxed);
  log(Level::error, "%s: out of memory", row_.name);
  real().Comm_call_errhandler(arguments_.comm, MPI_ERR_NO_MEM);
  return done(MPI_ERR_NO_MEM);
}

int PreparedCall::finish() {
  if (state_ == State::done) return result_;
  result_ = state_ == State::by_mpi ? finish_by_mpi() : finish_left();
  state_ = State::done;
  return result_;
}

// MPI does a call that was handed over, aside or for good. (If its first call made aside fails, the
// others wait in the second one.) The error handler is called once, when nothing is left to do.
int PreparedCall::finish_by_mpi() {
  CallByMpi part(arguments_, described_, {communicator_->rank(), communicator_->size()}, handed_,
                 Runtime::get().process());
  int result = MPI_SUCCESS;
  bool is_handled = false;
  do {
    if (!communicator_->enter_mpi(*this, part, &result)) return result;
    is_handled = !part.has_sequel();
    result = call_mpi(row_, part, arguments_.comm);
    communicator_ = find_again(arguments_.comm);
  } while (communicator_ && communicator_->leave_mpi(*this, part, &result));
  if (part.error() != MPI_SUCCESS && !is_handled) {
    real().Comm_call_errhandler(arguments_.comm, part.error());
  }
  return result;
}

namespace {

// Copies the buffers of a call that MPI does, if they are on a device and MPI can't take them
// there, and puts the copies into its arguments.
Status copy_for_mpi(const Row& row, std::optional<HostCopyForMpi>* copy, Arguments* arguments) try {
  if (is_passing() || is_mpi_cuda_aware() || !is_communicator(arguments->comm)) return {};
  int is_inter = 0, rank = 0, ranks = 0;
  real().Comm_test_inter(arguments->comm, &is_inter);
  if (is_inter) return {};
  real().Comm_rank(arguments->comm, &rank);
  real().Comm_size(arguments->comm, &ranks);
  Exchange exchange;
  this_thread.passing_datatype = nullptr;  // of an earlier call: its handle may mean another type
  const Position position{static_cast<Rank>(rank), static_cast<Rank>(ranks)};
  if (!row.describe(*arguments, position, &exchange) || !exchange.refusal.ok()) return {};
  if (exchange.input.place.is_host() && exchange.output.place.is_host()) return {};
  Status status = copy->emplace(Runtime::get().process()).begin(exchange);
  if (status.ok()) (*copy)->put_buffers(arguments);
  return status;
} catch (const std::bad_alloc&) {
  return {Code::memory, "no memory for a copy in host memory"};
}

}  // namespace

int PreparedCall::finish_left() {
  std::optional<HostCopyForMpi> copy;
  Arguments arguments = arguments_;
  Status status = copy_for_mpi(row_, &copy, &arguments);
  int result = MPI_SUCCESS;
  if (status.ok()) result = row_.call_alike(arguments);
  if (status.ok() && copy && result == MPI_SUCCESS) status = copy->end();
  if (status.ok()) return result;
  log(Level::error, "%s: %s", row_.name, status.message().c_str());
  return raise_error(arguments_.comm, status);
}

bool make_call(const Row& row, const Arguments& arguments, int* result) {
  PreparedCall call(row, arguments);
  const bool is_left = call.start() == PreparedCall::State::left_to_mpi;
  if (is_left && !may_be_on_device()) return false;
  *result = call.finish();
  return true;
}

}  // namespace sluice
