// SPDX-License-Identifier: BSD-3-Clause
//
// An MPI program that knows nothing of Sluice at compile time: reduces over all ranks, checks the
// sum, and prints on rank 0 the version of the Sluice it finds in itself, or "none".
#define _GNU_SOURCE  // RTLD_DEFAULT
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double mine[1000], sum[1000];
  for (int i = 0; i < 1000; i++) mine[i] = rank + i;
  MPI_Allreduce(mine, sum, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  int wrong = 0;
  for (int i = 0; i < 1000; i++) wrong += sum[i] != size * (size - 1) / 2.0 + (double)size * i;
  const char* (*version)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "sluice_version");
  if (rank == 0) printf("%s\n", wrong ? "wrong" : version ? version() : "none");
  MPI_Finalize();
  return wrong != 0;
}
