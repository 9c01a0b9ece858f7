// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI functions that free communicators, datatypes and operations. In them MPI calls the
// program's attribute callbacks, which may use the object being freed, and right afterwards MPI may
// reuse its handle. So Sluice deletes its own state before it calls MPI.
#include "src/mpi/communicators.h"
#include "src/mpi/datatypes.h"
#include "src/mpi/functions.h"
#include "src/mpi/runtime.h"

namespace sluice {
namespace {

int free_communicator(int (*mpi)(MPI_Comm*), MPI_Comm* comm) {
  const bool passes = !comm || *comm == real().comm_null || *comm == real().comm_world ||
                      *comm == real().comm_self || all_pass.load(std::memory_order_relaxed);
  if (passes) return mpi(comm);
  const FreedCommunicator freed(*comm);
  return mpi(comm);
}

// Whether calls in flight may still need the object: it is freed later then.
template <typename Handle>
bool is_deferred(bool (PendingCalls::*defer)(Handle), Handle* handle, Handle null) {
  if (live_requests.load(std::memory_order_relaxed) == 0 || !handle || *handle == null)
    return false;
  if (!(Runtime::get().pending().*defer)(*handle)) return false;
  *handle = null;
  return true;
}

int free_datatype(MPI_Datatype* type) {
  if (!type || all_pass.load(std::memory_order_relaxed)) return real().Type_free(type);
  if (is_deferred(&PendingCalls::defer_type, type, real().datatype_null)) return MPI_SUCCESS;
  const FreedDatatype freed(*type);
  return real().Type_free(type);
}

}  // namespace
}  // namespace sluice

extern "C" {

int PMPI_Comm_free(MPI_Comm* comm) {
  return sluice::free_communicator(sluice::real().Comm_free, comm);
}

// (Which waits for what is pending.)
int PMPI_Comm_disconnect(MPI_Comm* comm) {
  using sluice::live_requests;
  if (comm && live_requests.load(std::memory_order_relaxed) > 0)
    sluice::Runtime::get().pending().finish(*comm);
  return sluice::free_communicator(sluice::real().Comm_disconnect, comm);
}

int PMPI_Type_free(MPI_Datatype* type) { return sluice::free_datatype(type); }

int PMPI_Op_free(MPI_Op* op) {
  using sluice::PendingCalls;
  if (sluice::is_deferred(&PendingCalls::defer_operation, op, sluice::real().op_null)) {
    return MPI_SUCCESS;
  }
  return sluice::real().Op_free(op);
}

}  // extern "C"
