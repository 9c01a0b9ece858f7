// SPDX-License-Identifier: BSD-3-Clause
//
// Calls by CUDA IPC that fail, or that the ranks do not agree to make. Mostly it is the last rank,
// the victim, that something happens to.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/cuda/rounds.h"

namespace {

void expect_failure(MPI_Comm comm, const std::string& text) {
  std::printf("rank %d: %s\n", rank, text.c_str());
  test::check(!text.empty(), "an error");
  const bool names = text.find("rank " + std::to_string(victim)) != std::string::npos;
  test::check(names, "the error names the rank: " + text);
  test::check(MPI_Barrier(comm) != MPI_SUCCESS, "later calls fail, too");
}

void lack(const std::string& what) {
  MPI_Comm comm = duplicate();
  if (what == "host" || what == "context") {
    const Kind kind = what == "host" ? Kind::host : Kind::other_context;
    for (int call = 0; call < 3; ++call) {
      const std::string text = sum(comm, 20000, rank == victim ? kind : Kind::device);
      test::check(text.empty() && algorithm_of(comm) != "ipc", "a sum by " + algorithm_of(comm));
    }
    return;
  }
  const bool passes = what == "device_alloc" || what == "import";
  KindMemory data(Kind::device, 80000);
  data.put(std::vector<int>(20000, 1));
  if ((passes || what == "module") && rank == victim) CUDA(standin_fail)(what.c_str(), "1");
  const int result = MPI_Allreduce(MPI_IN_PLACE, data.data(), 20000, MPI_INT, MPI_SUM, comm);
  test::check(result == MPI_SUCCESS && data.get<int>(20000) == std::vector<int>(20000, size),
              "a sum, " + text_of(result));
  test::check(algorithm_of(comm) != "ipc", "a sum by " + algorithm_of(comm));
  expect_sums(comm, 5, passes);  // (later calls try again)
}

}  // namespace

// how: "copy:3", something that fails on the victim in its calls by CUDA IPC.
void failures() {
  MPI_Comm comm = duplicate();
  expect_sums(comm, 2, true);
  const size_t colon = option.find(':');
  KindMemory data(Kind::device, 80000);
  data.put(std::vector<int>(20000, 1));
  if (rank == victim) {
    CUDA(standin_fail)(option.substr(0, colon).c_str(), option.substr(colon + 1).c_str());
  }
  const int result = MPI_Allreduce(MPI_IN_PLACE, data.data(), 20000, MPI_INT, MPI_SUM, comm);
  may_be_left = true;
  expect_failure(comm, text_of(result));
}

// The victim is killed, and the others leave without MPI_Finalize.
void killed(const std::string& account) {
  MPI_Comm comm = duplicate();
  expect_sums(comm, 2, true);
  if (rank == victim) std::raise(SIGKILL);
  const std::string text = sum(comm), later = sum(comm);
  FILE* const file = std::fopen(account.c_str(), "a");
  std::fprintf(file, "rank %d: %s\n", rank, text.empty() || later.empty() ? "" : text.c_str());
  std::fclose(file);
  usleep(static_cast<useconds_t>(rank) * 200000);  // if all exit at once, mpirun may hang
  _exit(0);
}

// The victim's copies do not end, until the call has been given up.
void stuck() {
  MPI_Comm comm = duplicate();
  expect_sums(comm, 2, true);
  KindMemory data(Kind::device, 80000);
  data.put(std::vector<int>(20000, 1));
  if (rank == victim) CUDA(standin_hold)();
  const int result = MPI_Allreduce(MPI_IN_PLACE, data.data(), 20000, MPI_INT, MPI_SUM, comm);
  CUDA(standin_release)();
  may_be_left = true;
  std::printf("rank %d: %s\n", rank, text_of(result).c_str());
  test::check(result != MPI_SUCCESS && MPI_Barrier(comm) != MPI_SUCCESS,
              "this call and the next fail");
  expect_sums(duplicate(), 5, false);
}

// The same of a kernel that the victim tries before it votes: it has the others' slabs open for
// good, and they must leave them.
void stuck_in_a_vote() {
  MPI_Comm comm = duplicate();
  expect_sums(comm, 2, true);
  KindMemory data(Kind::device, 80000);
  data.put(std::vector<double>(10000, 1));
  if (rank == victim) CUDA(standin_hold)();
  const int result = MPI_Allreduce(MPI_IN_PLACE, data.data(), 10000, MPI_DOUBLE, MPI_SUM, comm);
  CUDA(standin_release)();
  may_be_left = true;
  test::check(result != MPI_SUCCESS && MPI_Barrier(comm) != MPI_SUCCESS,
              "this call and the next fail");
}

// A call of two of three ranks fails. The third one has slabs of theirs open, and they have its
// own. how: "launch", or "hold": the victim's copies do not end, and it learns of that in a later
// call.
void failures_of_a_part() {
  MPI_Comm comm = duplicate(), part = MPI_COMM_NULL;
  const bool is_in = rank == 0 || rank == victim, holds = option == "hold";
  expect_sums(comm, 2, true);
  MPI_Comm_split(comm, is_in ? 0 : MPI_UNDEFINED, 0, &part);
  if (is_in) {
    expect_sums(part, 2, true);
    KindMemory data(Kind::device, 80000);
    data.put(std::vector<int>(20000, 1));
    if (rank == victim && holds) CUDA(standin_hold)();
    if (rank == victim && !holds) CUDA(standin_fail)("launch", "1");
    const int result = MPI_Allreduce(MPI_IN_PLACE, data.data(), 20000, MPI_INT, MPI_SUM, part);
    CUDA(standin_release)();
    test::check(result != MPI_SUCCESS, "an error");
  }
  may_be_left = is_in || holds;
  if (holds) expect_sums(comm, 3, false);
}

// The program resets the victim's device: its slab is gone, and it makes another one.
void reset() {
  MPI_Comm comm = duplicate(), other = duplicate();
  expect_sums(comm, 3, true);
  expect_sums(other, 3, true);
  for (int round = 0; round < 2; ++round) {
    if (rank == victim) {
      CUcontext context = nullptr;
      CUdevice device = 0;
      test::expect_success(CUDA(cuCtxGetDevice)(&device), "cuCtxGetDevice");
      test::expect_success(CUDA(cuDevicePrimaryCtxReset_v2)(device), "cuDevicePrimaryCtxReset");
      test::expect_success(CUDA(cuDevicePrimaryCtxRetain)(&context, device),
                           "cuDevicePrimaryCtxRetain");
      test::expect_success(CUDA(cuDevicePrimaryCtxRelease_v2)(device), "cuDevicePrimaryCtxRelease");
      test::expect_success(CUDA(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
    }
    expect_sums(comm, 3, true);
    expect_sums(other, 3, true);
  }
}

// A child of the fork leaves all alone.
void forks() {
  MPI_Comm comm = duplicate();
  expect_sums(comm, 3, true);
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  int status = -1;
  test::check(waitpid(child, &status, 0) == child && status == 0, "the child ends well");
  expect_sums(comm, 3, true);
}

// how: what the victim lacks, one thing for each communicator. The call goes another way.
void reasons() {
  std::istringstream list(option);
  for (std::string one; std::getline(list, one, ',');) lack(one);
}

// Calls that do not match are errors on all ranks, which name one of them.
void mismatches() {
  using Call = int (*)(MPI_Comm comm, void* data, bool differs);
  constexpr Call calls[] = {
      [](MPI_Comm comm, void* data, bool differs) {
        return MPI_Allreduce(MPI_IN_PLACE, data, differs ? 20001 : 20000, MPI_INT, MPI_SUM, comm);
      },
      [](MPI_Comm comm, void* data, bool differs) {
        return MPI_Allreduce(MPI_IN_PLACE, data, 20000, MPI_INT, differs ? MPI_MAX : MPI_SUM, comm);
      },
      [](MPI_Comm comm, void* data, bool differs) {
        return MPI_Allreduce(MPI_IN_PLACE, data, 20000, differs ? MPI_FLOAT : MPI_INT, MPI_SUM,
                             comm);
      },
      [](MPI_Comm comm, void* data, bool differs) {
        return MPI_Bcast(data, 20000, MPI_INT, differs ? 1 : 0, comm);
      }};
  for (const Call call : calls) {
    MPI_Comm comm = duplicate();
    expect_sums(comm, 2, true);
    KindMemory data(Kind::device, 100000);
    const std::string text = text_of(call(comm, data.data(), rank == victim));
    std::printf("rank %d: %s\n", rank, text.c_str());
    test::check(text.find("rank ") != std::string::npos, "an error: " + text);
    test::check(MPI_Barrier(comm) != MPI_SUCCESS, "later calls fail, too");
  }
}
