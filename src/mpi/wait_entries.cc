// SPDX-License-Identifier: BSD-3-Clause
//
// MPI's functions that wait for requests and test them. While no non-blocking call of Sluice's has
// a request, they are MPI's own. Otherwise Sluice knows here that the program waits, and reports
// calls that have failed.
#include <span>

#include "src/mpi/nonblocking_call.h"
#include "src/mpi/pending_calls.h"
#include "src/mpi/runtime.h"

namespace sluice {
namespace {

bool has_requests() { return live_requests.load(std::memory_order_relaxed) > 0; }

// How a function returns the errors of several requests: as the first error, or in the statuses.
enum class Several : bool { no, yes };

// statuses: those that MPI has set. (Without room for them, nobody can be told which has failed.)
int report_after(int result, Several several, std::span<MPI_Status> statuses) {
  Runtime::get().pending().free_deferred();
  if (!this_thread.failed_calls) return result;
  if (several == Several::yes && result == MPI_SUCCESS)
    for (MPI_Status& status : statuses) status.MPI_ERROR = MPI_SUCCESS;
  const int failure = NonblockingCall::report_failures(statuses);
  if (result != MPI_SUCCESS) return result;
  return several == Several::yes ? MPI_ERR_IN_STATUS : failure;
}

std::span<MPI_Status> statuses_of(int count, MPI_Status* statuses) {
  const bool has_any = statuses != MPI_STATUS_IGNORE;  // (MPI_STATUSES_IGNORE is the same)
  return {statuses, has_any && count > 0 ? static_cast<size_t>(count) : 0};
}

// A wait of the program's, by MPI's test of the same requests; `is_over` says whether that is what
// the wait is for. (MPI's own wait would let MPI progress at each turn, which takes longer than
// ours.) report: report_after, with what it needs.
template <typename Wait, typename Test, typename IsOver, typename Report>
int wait(const Wait& mpi, const Test& test, const IsOver& is_over, const Report& report) {
  if (!has_requests()) return mpi();
  constexpr int turns_between = 8;
  PendingCalls& calls = Runtime::get().pending();
  int result = MPI_SUCCESS;
  {
    PendingCalls::Wait waiting(calls);
    for (bool over = false; !over;) {
      if (!calls.any()) {
        result = mpi();
        break;
      }
      for (int turns = 0; turns < turns_between; ++turns) {
        if (calls.drive() > 0) break;
      }
      result = test();
      over = result != MPI_SUCCESS || is_over();
      if (!over) waiting.give_way();
    }
  }
  return report(result);
}

// (Where MPI's test drives them, this is done twice, and takes less than a microsecond.)
template <typename Test, typename IsOver, typename Report>
int test(const Test& mpi, const IsOver& is_over, const Report& report) {
  if (!has_requests()) return mpi();
  PendingCalls& calls = Runtime::get().pending();
  const bool any = calls.any();
  if (any) calls.drive();
  const int result = mpi();
  if (any) calls.note_test(result == MPI_SUCCESS && is_over());
  return report(result);
}

auto report_one(MPI_Status* status) {
  return [=](int result) { return report_after(result, Several::no, statuses_of(1, status)); };
}

// count: read after the wait.
auto report_all(const int& count, MPI_Status* statuses) {
  return [&count, statuses](int result) {
    return report_after(result, Several::yes, statuses_of(count, statuses));
  };
}

}  // namespace
}  // namespace sluice

extern "C" {

int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  int flag = 0;
  return sluice::wait([&] { return sluice::real().Wait(request, status); },
                      [&] { return sluice::real().Test(request, &flag, status); },
                      [&] { return flag != 0; }, sluice::report_one(status));
}

int PMPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  int flag = 0;
  return sluice::wait([&] { return sluice::real().Waitall(count, requests, statuses); },
                      [&] { return sluice::real().Testall(count, requests, &flag, statuses); },
                      [&] { return flag != 0; }, sluice::report_all(count, statuses));
}

int PMPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  int flag = 0;
  return sluice::wait([&] { return sluice::real().Waitany(count, requests, index, status); },
                      [&] { return sluice::real().Testany(count, requests, index, &flag, status); },
                      [&] { return flag != 0; }, sluice::report_one(status));
}

int PMPI_Waitsome(int count, MPI_Request* requests, int* completed, int* indices,
                  MPI_Status* statuses) {
  const auto by = [=](auto* function) {
    return [=] { return function(count, requests, completed, indices, statuses); };
  };
  return sluice::wait(
      by(sluice::real().Waitsome), by(sluice::real().Testsome), [&] { return *completed != 0; },
      sluice::report_all(*completed, statuses));
}

int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return sluice::test([&] { return sluice::real().Test(request, flag, status); },
                      [&] { return *flag != 0; }, sluice::report_one(status));
}

// (MPICH asks for the statuses of those that have ended before it knows whether all have.)
int PMPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  const auto mpi = [&] {
    const int result = sluice::real().Testall(count, requests, flag, statuses);
    if (result == MPI_SUCCESS && !*flag) sluice::NonblockingCall::take_back_failures();
    return result;
  };
  return sluice::test(
      mpi, [&] { return *flag != 0; }, sluice::report_all(count, statuses));
}

int PMPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  return sluice::test([&] { return sluice::real().Testany(count, requests, index, flag, status); },
                      [&] { return *flag != 0; }, sluice::report_one(status));
}

int PMPI_Testsome(int count, MPI_Request* requests, int* completed, int* indices,
                  MPI_Status* statuses) {
  const auto mpi = [&] {
    return sluice::real().Testsome(count, requests, completed, indices, statuses);
  };
  return sluice::test(
      mpi, [&] { return *completed != 0; }, sluice::report_all(*completed, statuses));
}

// (It completes nothing, so it reports nothing.)
int PMPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  const auto mpi = [&] {
    sluice::this_thread.only_looks = true;
    const int result = sluice::real().Request_get_status(request, flag, status);
    sluice::this_thread.only_looks = false;
    return result;
  };
  return sluice::test(
      mpi, [&] { return *flag != 0; }, [](int result) { return result; });
}

}  // extern "C"
