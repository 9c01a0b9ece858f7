/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every collective that Sluice carries, of a short and a long message; each rank prints a number
 * that stands for all that it got. Sums are of whole numbers, so that none depends on who adds.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;
static unsigned long long outcome = 14695981039346656037ULL; /* FNV-1a */

static void add(const double* data, int count) {
  const unsigned char* const bytes = (const unsigned char*)data;
  for (size_t i = 0; i < sizeof *data * (size_t)count; ++i) {
    outcome = (outcome ^ bytes[i]) * 1099511628211ULL;
  }
}

/* Results of earlier calls are freed and their memory used again. */
static double* room(int count) {
  double* const made = malloc(sizeof *made * (size_t)count);
  for (int i = 0; i < count; ++i) made[i] = rank * 1000 + i % 997;
  return made;
}

static void combine(int count) {
  int* const counts = malloc(sizeof *counts * (size_t)size);
  double* const from = room(count * size);
  double* const to = room(count * size);
  for (int i = 0; i < size; ++i) counts[i] = count;
  MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  add(to, count);
  MPI_Reduce(from, to, count, MPI_DOUBLE, MPI_MAX, size - 1, MPI_COMM_WORLD);
  if (rank == size - 1) add(to, count);
  MPI_Reduce_scatter_block(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  add(to, count);
  MPI_Reduce_scatter(from, to, counts, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  add(to, count);
  MPI_Scan(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  add(to, count);
  MPI_Exscan(MPI_IN_PLACE, to, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  add(to, count);
  free(to);
  free(from);
  free(counts);
}

static void move(int count) {
  int* const counts = malloc(sizeof *counts * (size_t)size);
  int* const places = malloc(sizeof *places * (size_t)size);
  double* const from = room(count * size);
  double* const to = room(count * size);
  for (int i = 0; i < size; ++i) counts[i] = count, places[i] = i * count;
  MPI_Bcast(to, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  add(to, count);
  MPI_Allgather(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, MPI_COMM_WORLD);
  add(to, count * size);
  MPI_Alltoall(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, MPI_COMM_WORLD);
  add(to, count * size);
  MPI_Allgatherv(from, count, MPI_DOUBLE, to, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
  add(to, count * size);
  MPI_Alltoallv(from, counts, places, MPI_DOUBLE, to, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
  add(to, count * size);
  /* Only the root gets something, or gives it. */
  MPI_Gather(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  add(to, count * size);
  MPI_Gatherv(from, count, MPI_DOUBLE, to, counts, places, MPI_DOUBLE, size - 1, MPI_COMM_WORLD);
  add(to, count * size);
  MPI_Scatter(to, count, MPI_DOUBLE, from, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  add(from, count);
  MPI_Scatterv(to, counts, places, MPI_DOUBLE, from, count, MPI_DOUBLE, size - 1, MPI_COMM_WORLD);
  add(from, count);
  MPI_Barrier(MPI_COMM_WORLD);
  free(to);
  free(from);
  free(places);
  free(counts);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int count = 1; count < 100000; count *= 100) {
    combine(count);
    move(count);
  }
  printf("rank %d of %d: %016llx\n", rank, size, outcome);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
