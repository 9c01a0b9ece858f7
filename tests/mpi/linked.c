/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls of ctypes_program.py, by a program that is linked with MPI.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int holds, const char* what) {
  if (holds) return;
  printf("FAILED: %s\n", what);
  exit(1);
}

static double mine[100000], total[100000];

int main(int argc, char** argv) {
  static const int counts[] = {1, 1000, 100000};
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < counts[i]; ++j) mine[j] = rank + 1;
    MPI_Allreduce(mine, total, counts[i], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int j = 0; j < counts[i]; ++j) check(total[j] == size * (size + 1) / 2.0, "allreduce");
    MPI_Scan(mine, total, counts[i], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int j = 0; j < counts[i]; ++j) check(total[j] == (rank + 1) * (rank + 2) / 2.0, "scan");
    MPI_Bcast(mine, counts[i], MPI_DOUBLE, size - 1, MPI_COMM_WORLD);
    for (int j = 0; j < counts[i]; ++j) check(mine[j] == size, "bcast");
  }
  int* const everyone = malloc(sizeof(int) * (size_t)size);
  MPI_Allgather(&rank, 1, MPI_INT, everyone, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) check(everyone[i] == i, "allgather");
  for (int i = 0; i < size; ++i) everyone[i] = -1;
  MPI_Gather(&rank, 1, MPI_INT, everyone, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) check(everyone[i] == (rank == size - 1 ? i : -1), "gather");
  int number = -1;
  for (int i = 0; i < size; ++i) everyone[i] = i;
  MPI_Scatter(everyone, 1, MPI_INT, &number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  check(number == rank, "scatter");
  free(everyone);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("linked: all held on rank %d of %d\n", rank, size);
  MPI_Finalize();
  return 0;
}
