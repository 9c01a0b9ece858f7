// SPDX-License-Identifier: BSD-3-Clause
//
// collective_times BYTES ITERATIONS, on two ranks: how long a message takes one way in collectives,
// in microseconds. Prints half of the median of two MPI_Bcast, from rank 0 and then from rank 1,
// and the median of an MPI_Allreduce, in which both send at once: "bcast 25.08", "allreduce 37.41".
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

template <typename Function>
double median_us(int iterations, Function function) {
  constexpr int warm_up = 500;
  std::vector<double> times;
  for (int i = 0; i < warm_up + iterations; ++i) {
    const double begin = MPI_Wtime();
    function();
    if (i >= warm_up) times.push_back(1e6 * (MPI_Wtime() - begin));
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int bytes = argc > 1 ? atoi(argv[1]) : 8;
  const int iterations = std::max(argc > 2 ? atoi(argv[2]) : 1000, 1);
  std::vector<char> own(static_cast<size_t>(bytes)), all(own);
  const double bcasts = median_us(iterations, [&] {
    for (const int root : {0, 1}) MPI_Bcast(own.data(), bytes, MPI_BYTE, root, MPI_COMM_WORLD);
  });
  const double allreduce = median_us(iterations, [&] {
    MPI_Allreduce(own.data(), all.data(), bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
  });
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("bcast %.2f\nallreduce %.2f\n", bcasts / 2, allreduce);
  MPI_Finalize();
}
