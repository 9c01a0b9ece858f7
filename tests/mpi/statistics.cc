// SPDX-License-Identifier: BSD-3-Clause
//
// statistics: three alltoallv of known size on a communicator with a long name. Rank 0 has printed
// part of a line when MPI ends, and completes it afterwards.
#include <cstdio>
#include <numeric>
#include <vector>

#include "tests/mpi/harness.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm named;
  MPI_Comm_dup(MPI_COMM_WORLD, &named);
  MPI_Comm_set_name(named, "a name of more than twenty-four bytes");
  MPI_Comm_rank(named, &rank);
  MPI_Comm_size(named, &size);
  // Rank r sends 1 + r + i numbers to rank i.
  const auto n = static_cast<size_t>(size);
  std::vector<int> counts(n), places(n);
  std::iota(counts.begin(), counts.end(), 1 + rank);
  std::exclusive_scan(counts.begin(), counts.end(), places.begin(), 0);
  const auto total = static_cast<size_t>(places.back() + counts.back());
  const std::vector<int> from(total, rank);
  std::vector<int> to(total, -1);
  for (int i = 0; i < 3; ++i) {
    MPI_Alltoallv(from.data(), counts.data(), places.data(), MPI_INT, to.data(), counts.data(),
                  places.data(), MPI_INT, named);
  }
  test::check(to.front() == 0 && to.back() == size - 1, "the exchange");
  test::summarize("statistics");
  if (rank == 0) std::printf("half a line");
  MPI_Comm_free(&named);
  MPI_Finalize();
  if (rank == 0) std::printf(", the other half\n");
}
