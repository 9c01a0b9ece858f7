// SPDX-License-Identifier: BSD-3-Clause
//
// MPI's functions that wait for requests and test them. While no non-blocking call of Sluice's has
// a request, they are MPI's own. Otherwise Sluice knows here that the program waits, and reports
// calls that have failed.
#include "src/mpi/nonblocking_call.h"
#include "src/mpi/pending_calls.h"
#include "src/mpi/runtime.h"

namespace sluice {
namespace {

bool has_requests() { return live_requests.load(std::memory_order_relaxed) > 0; }

int report_after(int result) {
  Runtime::get().pending().free_deferred();
  if (!this_thread.failed_calls) return result;
  const int failure = NonblockingCall::report_failures();
  return result == MPI_SUCCESS ? failure : result;
}

template <typename Wait, typename... Arguments>
int wait(Wait* mpi, Arguments... arguments) {
  if (!has_requests()) return mpi(arguments...);
  PendingCalls& calls = Runtime::get().pending();
  calls.begin_wait();
  const int result = mpi(arguments...);
  calls.end_wait();
  return report_after(result);
}

template <typename Test, typename... Arguments>
int test(Test* mpi, Arguments... arguments) {
  if (!has_requests()) return mpi(arguments...);
  return report_after(mpi(arguments...));
}

}  // namespace
}  // namespace sluice

extern "C" {

int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  return sluice::wait(sluice::real().Wait, request, status);
}

int PMPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  return sluice::wait(sluice::real().Waitall, count, requests, statuses);
}

int PMPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return sluice::wait(sluice::real().Waitany, count, requests, index, status);
}

int PMPI_Waitsome(int count, MPI_Request* requests, int* completed, int* indices,
                  MPI_Status* statuses) {
  return sluice::wait(sluice::real().Waitsome, count, requests, completed, indices, statuses);
}

int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return sluice::test(sluice::real().Test, request, flag, status);
}

int PMPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  return sluice::test(sluice::real().Testall, count, requests, flag, statuses);
}

int PMPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  return sluice::test(sluice::real().Testany, count, requests, index, flag, status);
}

int PMPI_Testsome(int count, MPI_Request* requests, int* completed, int* indices,
                  MPI_Status* statuses) {
  return sluice::test(sluice::real().Testsome, count, requests, completed, indices, statuses);
}

int PMPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  return sluice::test(sluice::real().Request_get_status, request, flag, status);
}

}  // extern "C"
