// SPDX-License-Identifier: BSD-3-Clause
//
// An ordinary MPI program: sums vectors of several sizes over all ranks, checks every sum, and
// prints for each size "BYTES MICROSECONDS" (the median over the calls of the slowest rank's time).
// With arguments, these are the sizes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// The median time of a call in seconds, or -1 where a sum was wrong.
static double measure(float* mine, float* sum, int count, int calls, double* times) {
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int call = -2; call < calls; call++) {  // two to warm up
    for (int i = 0; i < count; i++) mine[i] = (float)(rank + i % 1000);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    MPI_Allreduce(mine, sum, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (call >= 0) times[call] = MPI_Wtime() - start;
    float ranks = (float)(size * (size - 1) / 2);
    for (int i = 0; i < count; i++) wrong |= sum[i] != ranks + (float)(size * (i % 1000));
  }
  MPI_Allreduce(MPI_IN_PLACE, times, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
  qsort(times, (size_t)calls, sizeof(*times), compare);
  return wrong ? -1 : times[calls / 2];
}

int main(int argc, char** argv) {
  static const char* all[] = {"8", "1024", "16384", "131072", "1048576", "8388608"};
  int sizes = argc > 1 ? argc - 1 : (int)(sizeof(all) / sizeof(all[0]));
  int rank, failed = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int s = 0; s < sizes && !failed; s++) {
    long bytes = atol(argc > 1 ? argv[s + 1] : all[s]);
    int count = (int)(bytes / (long)sizeof(float));
    int calls = bytes < 100000 ? 2000 : bytes < 4000000 ? 200 : 30;
    float* mine = malloc((size_t)bytes);
    float* sum = malloc((size_t)bytes);
    double* times = malloc((size_t)calls * sizeof(*times));
    double median = measure(mine, sum, count, calls, times);
    failed = median < 0;
    if (rank == 0) printf(failed ? "%ld wrong\n" : "%ld %.2f\n", bytes, median * 1e6);
    free(mine);
    free(sum);
    free(times);
  }
  MPI_Finalize();
  return failed;
}
