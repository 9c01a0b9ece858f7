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

// A wait of the program's, by MPI's test of the same requests; `is_over` says whether that is what
// the wait is for. (MPI's own wait would let MPI progress at each turn, which takes longer than
// ours.)
template <typename Wait, typename Test, typename IsOver>
int wait(const Wait& mpi, const Test& test, const IsOver& is_over) {
  if (!has_requests()) return mpi();
  constexpr int turns_between = 8;
  PendingCalls& calls = Runtime::get().pending();
  calls.begin_wait();
  int result = MPI_SUCCESS;
  for (bool over = false; !over;) {
    if (!calls.any()) {
      result = mpi();
      break;
    }
    for (int turns = 0; turns < turns_between; ++turns) {
      if (calls.drive(PendingCalls::Thread::of_the_program) > 0) break;
    }
    result = test();
    over = result != MPI_SUCCESS || is_over();
    if (!over) calls.give_way();
  }
  calls.end_wait();
  return report_after(result);
}

// (Where MPI's test drives them, this is done twice, and takes less than a microsecond.)
template <typename Test, typename... Arguments>
int test(Test* mpi, Arguments... arguments) {
  if (!has_requests()) return mpi(arguments...);
  PendingCalls& calls = Runtime::get().pending();
  if (calls.any()) calls.drive(PendingCalls::Thread::of_the_program);
  return report_after(mpi(arguments...));
}

}  // namespace
}  // namespace sluice

extern "C" {

int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  int flag = 0;
  return sluice::wait([&] { return sluice::real().Wait(request, status); },
                      [&] { return sluice::real().Test(request, &flag, status); },
                      [&] { return flag != 0; });
}

int PMPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  int flag = 0;
  return sluice::wait([&] { return sluice::real().Waitall(count, requests, statuses); },
                      [&] { return sluice::real().Testall(count, requests, &flag, statuses); },
                      [&] { return flag != 0; });
}

int PMPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  int flag = 0;
  return sluice::wait([&] { return sluice::real().Waitany(count, requests, index, status); },
                      [&] { return sluice::real().Testany(count, requests, index, &flag, status); },
                      [&] { return flag != 0; });
}

int PMPI_Waitsome(int count, MPI_Request* requests, int* completed, int* indices,
                  MPI_Status* statuses) {
  const auto by = [=](auto* function) {
    return [=] { return function(count, requests, completed, indices, statuses); };
  };
  return sluice::wait(by(sluice::real().Waitsome), by(sluice::real().Testsome),
                      [&] { return *completed != 0; });
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
