// SPDX-License-Identifier: BSD-3-Clause
//
// statistics: three alltoallv of known size on a communicator with a long name. Rank 0 has printed
// part of a line when MPI ends, and completes it afterwards.
#include <cstdio>
#include <numeric>
#include <vector>

#include "tests/mpi/harness.h"

int main(int argc, char** argv) {
  test::start(argc, argv);
  MPI_Comm named;
  MPI_Comm_dup(MPI_COMM_WORLD, &named);
  MPI_Comm_set_name(named, "a name of more than twenty-four bytes");
  // Rank r sends 1 + r + i numbers to rank i.
  const auto n = static_cast<size_t>(test::size);
  std::vector<int> counts(n), places(n);
  std::iota(counts.begin(), counts.end(), 1 + test::rank);
  std::exclusive_scan(counts.begin(), counts.end(), places.begin(), 0);
  const auto total = static_cast<size_t>(places.back() + counts.back());
  const std::vector<int> from(total, test::rank);
  std::vector<int> to(total, -1);
  for (int i = 0; i < 3; ++i) {
    MPI_Alltoallv(from.data(), counts.data(), places.data(), MPI_INT, to.data(), counts.data(),
                  places.data(), MPI_INT, named);
  }
  test::check(to.front() == 0 && to.back() == test::size - 1, "the exchange");
  test::summarize("statistics");
  if (test::rank == 0) std::printf("half a line");
  MPI_Comm_free(&named);
  MPI_Finalize();
  if (test::rank == 0) std::printf(", the other half\n");
}
