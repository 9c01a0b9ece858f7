// SPDX-License-Identifier: BSD-3-Clause
//
// counted_calls --what kinds|late|bytes|halves|failure [--calls N] [--folder PATH]: calls of known
// number and size, for a file of statistics.
//
// kinds: 3000 allreduces of 8 bytes, N of 1 MiB, broadcasts, scans, alltoallvs and non-blocking
// calls, on communicators of one name. late: N allreduces to which the last rank comes 50 ms after
// the others have written a file each into the folder. bytes: N allreduces of 4 MiB. halves: no
// communicator has all ranks. failure: after N allreduces the ranks disagree; no rank calls
// MPI_Finalize.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

void allreduce(int doubles, uint64_t calls, MPI_Comm comm) {
  const std::vector<double> in(static_cast<size_t>(doubles), 1);
  std::vector<double> out(in.size());
  int size = 0;
  MPI_Comm_size(comm, &size);
  for (uint64_t i = 0; i < calls; ++i) {
    MPI_Allreduce(in.data(), out.data(), doubles, MPI_DOUBLE, MPI_SUM, comm);
  }
  test::check(calls == 0 || out.back() == size, "an allreduce");
}

void kinds(uint64_t calls) {
  allreduce(1, 3000, MPI_COMM_WORLD);
  allreduce(1 << 17, calls, MPI_COMM_WORLD);
  int value = 7, sum = 0;
  for (uint64_t i = 0; i < calls; ++i) {
    MPI_Bcast(&value, 1, MPI_INT, test::size - 1, MPI_COMM_WORLD);
    MPI_Scan(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  for (uint64_t i = 0; i < calls; ++i) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, test::rank % 2, 0, &half);
    MPI_Comm_set_name(half, "a \"half\" \\");
    allreduce(2, 5, half);
    MPI_Comm_free(&half);
  }
}

void late(uint64_t calls, const std::filesystem::path& folder) {
  const int last = test::size - 1;
  allreduce(1, 1, MPI_COMM_WORLD);
  for (uint64_t i = 0; i < calls; ++i) {
    const auto flag = [&](int rank) {
      return folder / ("here-" + std::to_string(i) + "-" + std::to_string(rank));
    };
    if (test::rank != last) std::ofstream(flag(test::rank)) << "\n";
    for (int rank = 0; test::rank == last && rank < last; ++rank) {
      while (!std::filesystem::exists(flag(rank))) usleep(1000);
    }
    if (test::rank == last) usleep(50'000);
    allreduce(1, 1, MPI_COMM_WORLD);
  }
}

void halves(uint64_t calls) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, test::rank % 2, 0, &half);
  allreduce(1, calls, half);
  MPI_Comm_free(&half);
}

// (All have returned from the call when the first one leaves.)
void fail_and_leave(uint64_t calls) {
  allreduce(1, calls, MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const double in[2] = {};
  double out[2];
  const int count = test::rank == 0 ? 2 : 1;
  const int error = MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  test::check(error != MPI_SUCCESS, "ranks that disagree");
  IN_MPI(MPI_Barrier)(MPI_COMM_WORLD);
  if (test::rank == 0) std::printf("counted_calls: checks held\n");
  std::fflush(stdout);
  _exit(EXIT_FAILURE);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const std::string what = options.text("what", "kinds");
  const uint64_t calls = options.number("calls", 20);
  if (what == "kinds") kinds(calls);
  if (what == "late") late(calls, options.text("folder", "."));
  if (what == "bytes") allreduce(1 << 19, calls, MPI_COMM_WORLD);
  if (what == "halves") halves(calls);
  if (what == "failure") fail_and_leave(calls);
  return test::finish("counted_calls");
}
