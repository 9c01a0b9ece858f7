// SPDX-License-Identifier: BSD-3-Clause
//
// meeting [SECONDS | fails]: ranks that are late, or cannot reach each other. Under
// MPI_ERRORS_RETURN each rank says which error it got, and stays until the others have said theirs.
// With `fails` the job then ends as if all was well, because mpirun takes seconds to end another.
//
// All ranks but 0 first hear of rank 0; then rank 1 computes for so long, while the others wait for
// a connection to it in MPI_Alltoall.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

using test::rank;
bool fails = false;  // every rank's call should

void check_result(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  std::printf("rank %d: %s failed: %s\n", rank, call, text);
  std::fflush(stdout);
  MPI_Request others = MPI_REQUEST_NULL;  // (Sluice has no part in it.)
  MPI_Ibarrier(MPI_COMM_WORLD, &others);
  MPI_Wait(&others, MPI_STATUS_IGNORE);
  if (!fails) _exit(3);
  MPI_Finalize();
  std::exit(0);
}

void compute(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  fails = argc > 1 && std::strcmp(argv[1], "fails") == 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int word = rank == 0 ? 42 : 0;
  check_result(MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  test::check(word == 42, "what rank 0 sends");
  if (rank == 1 && argc > 1 && !fails) compute(std::atof(argv[1]));
  const std::vector<int> from(static_cast<size_t>(test::size), rank);
  std::vector<int> to(from.size(), -1);
  check_result(MPI_Alltoall(from.data(), 1, MPI_INT, to.data(), 1, MPI_INT, MPI_COMM_WORLD),
               "MPI_Alltoall");
  for (int i = 0; i < test::size; ++i) test::check(to[static_cast<size_t>(i)] == i, "an exchange");
  return test::finish("meeting");
}
