/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preloaded into a benchmark, this breaks what each call brings about, so that -c has something
 * to find: one bit of the result, on the root if only the root has one and else on the last rank;
 * MPI_Barrier does not wait. With STRAY=1 it leaves results alone, and writes to the receive buffer
 * of a rank that has no result. */
#include <mpi.h>
#include <stdlib.h>

enum with_result { ALL, ROOT, ALL_BUT_FIRST };

static int spoil(int status, void* result, MPI_Comm comm, enum with_result ranks) {
  int rank, size;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  int bystander = ranks == ROOT ? size - 1 : ranks == ALL_BUT_FIRST ? 0 : MPI_PROC_NULL;
  int victim = getenv("STRAY") ? bystander : ranks == ROOT ? 0 : size - 1;
  if (rank == victim) *(unsigned char*)result ^= 1;
  return status;
}

int MPI_Barrier(MPI_Comm comm) {
  (void)comm;
  return MPI_SUCCESS;
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return spoil(PMPI_Bcast(buffer, count, type, root, comm), buffer, comm, ALL);
}

/* The benchmark's own count of bad results must stay true. */
int MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  int status = PMPI_Allreduce(send, recv, count, type, op, comm);
  return op == MPI_SUM ? spoil(status, recv, comm, ALL) : status;
}

int MPI_Reduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  return spoil(PMPI_Reduce(send, recv, count, type, op, root, comm), recv, comm, ROOT);
}

int MPI_Reduce_scatter(const void* send, void* recv, const int counts[], MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm) {
  return spoil(PMPI_Reduce_scatter(send, recv, counts, type, op, comm), recv, comm, ALL);
}

int MPI_Reduce_scatter_block(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  return spoil(PMPI_Reduce_scatter_block(send, recv, count, type, op, comm), recv, comm, ALL);
}

int MPI_Scan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return spoil(PMPI_Scan(send, recv, count, type, op, comm), recv, comm, ALL);
}

int MPI_Exscan(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm) {
  return spoil(PMPI_Exscan(send, recv, count, type, op, comm), recv, comm, ALL_BUT_FIRST);
}

int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                  int recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  return spoil(PMPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm), recv,
               comm, ALL);
}

int MPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                   const int counts[], const int displs[], MPI_Datatype recv_type, MPI_Comm comm) {
  return spoil(PMPI_Allgatherv(send, send_count, send_type, recv, counts, displs, recv_type, comm),
               recv, comm, ALL);
}

int MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                 int recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  return spoil(PMPI_Alltoall(send, send_count, send_type, recv, recv_count, recv_type, comm), recv,
               comm, ALL);
}

int MPI_Alltoallv(const void* send, const int send_counts[], const int send_displs[],
                  MPI_Datatype send_type, void* recv, const int recv_counts[],
                  const int recv_displs[], MPI_Datatype recv_type, MPI_Comm comm) {
  return spoil(PMPI_Alltoallv(send, send_counts, send_displs, send_type, recv, recv_counts,
                              recv_displs, recv_type, comm),
               recv, comm, ALL);
}

int MPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
               MPI_Datatype recv_type, int root, MPI_Comm comm) {
  int status = PMPI_Gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
  return spoil(status, recv, comm, ROOT);
}

int MPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                const int counts[], const int displs[], MPI_Datatype recv_type, int root,
                MPI_Comm comm) {
  int status =
      PMPI_Gatherv(send, send_count, send_type, recv, counts, displs, recv_type, root, comm);
  return spoil(status, recv, comm, ROOT);
}

int MPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm) {
  int status = PMPI_Scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
  return spoil(status, recv, comm, ALL);
}

int MPI_Scatterv(const void* send, const int counts[], const int displs[], MPI_Datatype send_type,
                 void* recv, int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm) {
  int status =
      PMPI_Scatterv(send, counts, displs, send_type, recv, recv_count, recv_type, root, comm);
  return spoil(status, recv, comm, ALL);
}
