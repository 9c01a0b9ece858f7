/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A library that is preloaded beside Sluice, such as profilers are: counts the program's calls of
 * three functions, has MPI do them under their other names, and prints the counts in MPI_Finalize.
 */
#include <mpi.h>
#include <stdio.h>

static int reductions, broadcasts, barriers;

int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  ++reductions;
  return PMPI_Allreduce(from, to, count, type, op, comm);
}

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  ++broadcasts;
  return PMPI_Bcast(data, count, type, root, comm);
}

int MPI_Barrier(MPI_Comm comm) {
  ++barriers;
  return PMPI_Barrier(comm);
}

int MPI_Finalize(void) {
  printf("traced %d allreduce, %d bcast, %d barrier\n", reductions, broadcasts, barriers);
  fflush(stdout);
  return PMPI_Finalize();
}
