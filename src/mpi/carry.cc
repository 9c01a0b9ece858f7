// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/carry.h"

#include <new>
#include <optional>

#include "src/base/log.h"
#include "src/mpi/errors.h"

namespace sluice {
namespace {

// Describes a call; false if MPI is to do it. If this rank has no memory for that, *exchange
// becomes nullptr and the result is true.
bool understand(const Row& row, const Arguments& arguments, Position position,
                FurtherBuffers* further, Exchange** exchange) {
  this_thread.passing_datatype = nullptr;
  try {
    if (!row.describe(arguments, position, *exchange)) return false;
    if (further) further->attach(*exchange);
    return true;
  } catch (const std::bad_alloc&) {
    *exchange = nullptr;
    return true;
  }
}

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

int call_mpi(const Row& row, const CallByMpi& call, MPI_Comm comm) {
  std::optional<ReturnedErrors> returned;
  if (call.has_sequel()) returned.emplace(comm);
  return (call.is_programs() ? row.call_alike : row.call)(call.arguments());
}

// MPI does a call that was handed over, aside or for good. (If its first call made aside fails, the
// others wait in the second one.) The error handler is called once, when nothing is left to do.
[[gnu::cold]] int do_by_mpi(const Row& row, const Arguments& arguments, const Exchange& exchange,
                            Communicator* communicator, const HandedOver& handed) {
  CallByMpi call(arguments, exchange, {communicator->rank(), communicator->size()}, handed,
                 Runtime::get().process());
  int result = MPI_SUCCESS;
  bool is_handled = false;
  do {
    if (!communicator->enter_mpi(row.function, row.row, call, &result)) return result;
    is_handled = !call.has_sequel();
    result = call_mpi(row, call, arguments.comm);
    communicator = find_again(arguments.comm);
  } while (communicator && communicator->leave_mpi(row.function, call, &result));
  if (call.error() != MPI_SUCCESS && !is_handled) {
    real().Comm_call_errhandler(arguments.comm, call.error());
  }
  return result;
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

bool carry(const Row& row, const Arguments& arguments, FurtherBuffers* further, int* result) {
  if (is_passing()) return false;
  Communicator* communicator = last_communicator(arguments.comm);
  Exchange described;
  Exchange* exchange = &described;
  try {
    if (!communicator && is_switched_off()) return false;
    if (!communicator) communicator = look_up_by_all_means(arguments.comm);
    if (!communicator || communicator->is_left_to_mpi()) return false;
    const Position position{communicator->rank(), communicator->size()};
    if (!understand(row, arguments, position, further, &exchange)) return false;
    if (exchange && is_doubtful(*exchange) && is_error_of_mpi(*exchange, row.attempt)) return false;
    if (exchange && !exchange->refusal.ok() && position.size == 1) return false;
  } catch (const std::bad_alloc&) {
    exchange = nullptr;
  }
  if (communicator) {
    using Performed = Communicator::Performed;
    HandedOver handed;
    const Performed performed =
        communicator->perform(row.function, row.row, arguments, exchange, &handed, result);
    if (performed == Performed::handed_over) {
      *result = do_by_mpi(row, arguments, *exchange, communicator, handed);
    }
    return performed != Performed::left_to_mpi;
  }
  communicators_missed.store(true, std::memory_order_relaxed);
  log(Level::error, "%s: out of memory", row.function);
  *result = MPI_ERR_NO_MEM;
  real().Comm_call_errhandler(arguments.comm, *result);
  return true;
}

}  // namespace sluice
