// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/carry.h"

#include <new>

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

bool carry(const Row& row, const Arguments& arguments, FurtherBuffers* further, bool* is_awaited,
           int* result) {
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
    if (communicator->perform(row.function, row.row, arguments, exchange, result)) return true;
    *is_awaited = communicator->awaits_mpi();
    return false;
  }
  communicators_missed.store(true, std::memory_order_relaxed);
  log(Level::error, "%s: out of memory", row.function);
  *result = MPI_ERR_NO_MEM;
  real().Comm_call_errhandler(arguments.comm, *result);
  return true;
}

Communicator* find_awaiting(MPI_Comm handle) {
  Communicator* const last = last_communicator(handle);
  return last ? last : find_existing_communicator(handle);
}

}  // namespace sluice
