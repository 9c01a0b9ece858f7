// SPDX-License-Identifier: BSD-3-Clause
//
// MPI's functions that wait for requests and test them. While no non-blocking call of Sluice's has
// a request, they are MPI's own. Otherwise Sluice knows here that the program waits, and reports
// calls that have failed.
#include <span>

#include "src/mpi/nonblocking_call.h"
#include "src/mpi/pending_calls.h"
#include "src/mpi/persistent_requests.h"
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

// Requests that a wait has found done: the program's array, of which all or those at some indices.
struct Done {
  const MPI_Request* requests;
  int count;
  const int* indices = nullptr;
};

// Reports persistent calls among them. (Their requests stay in the program's array.)
int report_persistent(int result, Several several, const Done& done,
                      std::span<MPI_Status> statuses) {
  if (failed_starts.load(std::memory_order_relaxed) == 0) return result;
  if (result != MPI_SUCCESS && result != MPI_ERR_IN_STATUS) return result;
  for (int i = 0; i < done.count; ++i) {
    const int error = report_failed_start(done.requests[done.indices ? done.indices[i] : i]);
    if (error == MPI_SUCCESS) continue;
    if (several == Several::no) return error;
    if (result == MPI_SUCCESS)
      for (MPI_Status& status : statuses) status.MPI_ERROR = MPI_SUCCESS;
    if (!statuses.empty()) statuses[static_cast<size_t>(i)].MPI_ERROR = error;
    result = MPI_ERR_IN_STATUS;
  }
  return result;
}

int report_one(int result, MPI_Status* status, const Done& done) {
  result = report_after(result, Several::no, statuses_of(1, status));
  return report_persistent(result, Several::no, done, {});
}

int report_all(int result, MPI_Status* statuses, const Done& done) {
  const auto set = statuses_of(done.count, statuses);
  result = report_after(result, Several::yes, set);
  return report_persistent(result, Several::yes, done, set);
}

// Whether all are done; *next: those before it are. (MPI_Testall of MPICH 4.0 fails if a persistent
// collective of its own is among them.)
bool are_done(int count, const MPI_Request* requests, int* next) {
  this_thread.only_looks = true;
  for (int flag = 1; requests && *next < count; ++*next) {
    real().Request_get_status(requests[*next], &flag, MPI_STATUS_IGNORE);
    if (!flag) break;
  }
  this_thread.only_looks = false;
  return !requests || *next >= count;
}

}  // namespace
}  // namespace sluice

extern "C" {

int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  int flag = 0;
  return sluice::wait([&] { return sluice::real().Wait(request, status); },
                      [&] { return sluice::real().Test(request, &flag, status); },
                      [&] { return flag != 0; },
                      [&](int result) {
                        return sluice::report_one(result, status, {request, 1});
                      });
}

int PMPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  int next = 0;
  bool over = false;
  const auto mpi = [&] { return sluice::real().Waitall(count, requests, statuses); };
  const auto test = [&] {
    over = sluice::are_done(count, requests, &next);
    return over ? mpi() : MPI_SUCCESS;
  };
  return sluice::wait(
      mpi, test, [&] { return over; },
      [&](int result) {
        return sluice::report_all(result, statuses, {requests, count});
      });
}

int PMPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  int flag = 0;
  return sluice::wait([&] { return sluice::real().Waitany(count, requests, index, status); },
                      [&] { return sluice::real().Testany(count, requests, index, &flag, status); },
                      [&] { return flag != 0; },
                      [&](int result) {
                        const bool is_one = result == MPI_SUCCESS && *index >= 0;
                        return sluice::report_one(result, status, {requests, is_one, index});
                      });
}

int PMPI_Waitsome(int count, MPI_Request* requests, int* completed, int* indices,
                  MPI_Status* statuses) {
  const auto by = [=](auto* function) {
    return [=] { return function(count, requests, completed, indices, statuses); };
  };
  return sluice::wait(
      by(sluice::real().Waitsome), by(sluice::real().Testsome), [&] { return *completed != 0; },
      [&](int result) {
        return sluice::report_all(result, statuses, {requests, *completed, indices});
      });
}

int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return sluice::test([&] { return sluice::real().Test(request, flag, status); },
                      [&] { return *flag != 0; },
                      [&](int result) {
                        const bool is_one = result == MPI_SUCCESS && *flag != 0;
                        return sluice::report_one(result, status, {request, is_one});
                      });
}

// (MPICH asks for the statuses of those that have ended before it knows whether all have.)
int PMPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  const auto mpi = [&] {
    const int result = sluice::real().Testall(count, requests, flag, statuses);
    if (result == MPI_SUCCESS && !*flag) sluice::NonblockingCall::take_back_failures();
    return result;
  };
  return sluice::test(
      mpi, [&] { return *flag != 0; },
      [&](int result) {
        const int number = result != MPI_SUCCESS || *flag != 0 ? count : 0;
        return sluice::report_all(result, statuses, {requests, number});
      });
}

int PMPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  return sluice::test([&] { return sluice::real().Testany(count, requests, index, flag, status); },
                      [&] { return *flag != 0; },
                      [&](int result) {
                        const bool is_one = result == MPI_SUCCESS && *flag != 0 && *index >= 0;
                        return sluice::report_one(result, status, {requests, is_one, index});
                      });
}

int PMPI_Testsome(int count, MPI_Request* requests, int* completed, int* indices,
                  MPI_Status* statuses) {
  const auto mpi = [&] {
    return sluice::real().Testsome(count, requests, completed, indices, statuses);
  };
  return sluice::test(
      mpi, [&] { return *completed != 0; },
      [&](int result) {
        return sluice::report_all(result, statuses, {requests, *completed, indices});
      });
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
