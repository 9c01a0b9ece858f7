/* SPDX-License-Identifier: BSD-3-Clause
 *
 * weak calls | errors | group | none: as libraries do that serve MPI libraries before MPI 4, too,
 * refers weakly to functions of MPI 4. On 2 ranks or more. calls   calls each function with counts
 * of 64 bits, and compares with MPI_X's results errors  calls them with counts that an int can't
 * hold group   calls MPI_Comm_create_from_group, which MPI lacks none    says which functions are
 * missing
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int MPI_Allgather_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm);
int MPI_Allgatherv_c(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                     MPI_Datatype, MPI_Comm);
int MPI_Allreduce_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Alltoall_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm);
int MPI_Alltoallv_c(const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*,
                    const MPI_Count*, const MPI_Aint*, MPI_Datatype, MPI_Comm);
int MPI_Bcast_c(void*, MPI_Count, MPI_Datatype, int, MPI_Comm);
int MPI_Exscan_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Gather_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int,
                 MPI_Comm);
int MPI_Gatherv_c(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                  MPI_Datatype, int, MPI_Comm);
int MPI_Reduce_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm);
int MPI_Reduce_scatter_c(const void*, void*, const MPI_Count*, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Reduce_scatter_block_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Scan_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Scatter_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int,
                  MPI_Comm);
int MPI_Scatterv_c(const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*, MPI_Count,
                   MPI_Datatype, int, MPI_Comm);
int MPI_Comm_create_from_group(MPI_Group, const char*, MPI_Info, MPI_Errhandler, MPI_Comm*);

/* clang-format off */
#define EACH(ROW) \
  ROW(MPI_Allgather_c) \
  ROW(MPI_Allgatherv_c) \
  ROW(MPI_Allreduce_c) \
  ROW(MPI_Alltoall_c) \
  ROW(MPI_Alltoallv_c) \
  ROW(MPI_Bcast_c) \
  ROW(MPI_Exscan_c) \
  ROW(MPI_Gather_c) \
  ROW(MPI_Gatherv_c) \
  ROW(MPI_Reduce_c) \
  ROW(MPI_Reduce_scatter_c) \
  ROW(MPI_Reduce_scatter_block_c) \
  ROW(MPI_Scan_c) \
  ROW(MPI_Scatter_c) \
  ROW(MPI_Scatterv_c) \
  ROW(MPI_Comm_create_from_group)
/* clang-format on */
#define WEAK(name) _Pragma(WEAK_TEXT(weak name))
#define WEAK_TEXT(text) #text
EACH(WEAK)

enum { most = 16, block = 3 };

static int rank, size, handled;
static int failed;
static int in[most * most * block], out[most * most * block], right[most * most * block];
static int counts[most], places[most];
static MPI_Count wide_counts[most];
static MPI_Aint wide_places[most];

static void check(int holds, const char* what) {
  if (holds) return;
  printf("FAILED: %s on rank %d\n", what, rank);
  failed = 1;
}

static void compare(const char* what) {
  check(memcmp(out, right, sizeof out) == 0, what);
  memset(out, 0, sizeof out);
  memset(right, 0, sizeof right);
}

/* Blocks of other sizes, which are the same on all ranks, with gaps. */
static void lay_out(int blocks) {
  for (int i = 0; i < blocks; ++i) {
    wide_counts[i] = counts[i] = i % block;
    wide_places[i] = places[i] = i * (block + 1);
  }
}

static void reduce(MPI_Comm comm) {
  lay_out(size);
  MPI_Allreduce_c(in, out, size, MPI_INT, MPI_SUM, comm);
  MPI_Allreduce(in, right, size, MPI_INT, MPI_SUM, comm);
  compare("MPI_Allreduce_c");
  MPI_Reduce_c(in, out, size, MPI_INT, MPI_MAX, 1, comm);
  MPI_Reduce(in, right, size, MPI_INT, MPI_MAX, 1, comm);
  compare("MPI_Reduce_c");
  MPI_Reduce_scatter_c(in, out, wide_counts, MPI_INT, MPI_SUM, comm);
  MPI_Reduce_scatter(in, right, counts, MPI_INT, MPI_SUM, comm);
  compare("MPI_Reduce_scatter_c");
  MPI_Reduce_scatter_block_c(in, out, block, MPI_INT, MPI_MIN, comm);
  MPI_Reduce_scatter_block(in, right, block, MPI_INT, MPI_MIN, comm);
  compare("MPI_Reduce_scatter_block_c");
  MPI_Scan_c(in, out, size, MPI_INT, MPI_SUM, comm);
  MPI_Scan(in, right, size, MPI_INT, MPI_SUM, comm);
  compare("MPI_Scan_c");
  MPI_Exscan_c(in, out, size, MPI_INT, MPI_SUM, comm);
  MPI_Exscan(in, right, size, MPI_INT, MPI_SUM, comm);
  compare("MPI_Exscan_c");
}

/* In place it must not be read. (The compiler does not know where it is.) */
static const MPI_Aint* volatile nowhere = (const MPI_Aint*)1;

static void move(MPI_Comm comm) {
  lay_out(size);
  memcpy(out, in, sizeof out);
  memcpy(right, in, sizeof right);
  MPI_Bcast_c(out, block, MPI_INT, 1, comm);
  MPI_Bcast(right, block, MPI_INT, 1, comm);
  compare("MPI_Bcast_c");
  MPI_Allgather_c(in, block, MPI_INT, out, block, MPI_INT, comm);
  MPI_Allgather(in, block, MPI_INT, right, block, MPI_INT, comm);
  compare("MPI_Allgather_c");
  MPI_Alltoall_c(in, block, MPI_INT, out, block, MPI_INT, comm);
  MPI_Alltoall(in, block, MPI_INT, right, block, MPI_INT, comm);
  compare("MPI_Alltoall_c");
  MPI_Allgatherv_c(in, rank % block, MPI_INT, out, wide_counts, wide_places, MPI_INT, comm);
  MPI_Allgatherv(in, rank % block, MPI_INT, right, counts, places, MPI_INT, comm);
  compare("MPI_Allgatherv_c");
  for (int i = 0; i < size; ++i) wide_counts[i] = counts[i] = (i + rank) % block;
  MPI_Alltoallv_c(in, wide_counts, wide_places, MPI_INT, out, wide_counts, wide_places, MPI_INT,
                  comm);
  MPI_Alltoallv(in, counts, places, MPI_INT, right, counts, places, MPI_INT, comm);
  compare("MPI_Alltoallv_c");
  memcpy(out, in, sizeof out);
  memcpy(right, in, sizeof right);
  MPI_Alltoallv_c(MPI_IN_PLACE, NULL, nowhere, MPI_DATATYPE_NULL, out, wide_counts, wide_places,
                  MPI_INT, comm);
  MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, right, counts, places, MPI_INT, comm);
  compare("MPI_Alltoallv_c in place");
}

/* To rank 1 and from it: the others' arrays must not be read. */
static void move_by_root(MPI_Comm comm) {
  const int is_root = rank == 1;
  const int* const n = is_root ? counts : NULL;
  const int* const at = is_root ? places : NULL;
  const MPI_Count* const wide = is_root ? wide_counts : NULL;
  const MPI_Aint* const wide_at = is_root ? wide_places : nowhere;
  lay_out(size);
  MPI_Gather_c(in, block, MPI_INT, out, block, MPI_INT, 1, comm);
  MPI_Gather(in, block, MPI_INT, right, block, MPI_INT, 1, comm);
  compare("MPI_Gather_c");
  MPI_Gatherv_c(in, rank % block, MPI_INT, out, wide, wide_at, MPI_INT, 1, comm);
  MPI_Gatherv(in, rank % block, MPI_INT, right, n, at, MPI_INT, 1, comm);
  compare("MPI_Gatherv_c");
  MPI_Scatter_c(in, block, MPI_INT, out, block, MPI_INT, 1, comm);
  MPI_Scatter(in, block, MPI_INT, right, block, MPI_INT, 1, comm);
  compare("MPI_Scatter_c");
  MPI_Scatterv_c(in, wide, wide_at, MPI_INT, out, rank % block, MPI_INT, 1, comm);
  MPI_Scatterv(in, n, at, MPI_INT, right, rank % block, MPI_INT, 1, comm);
  compare("MPI_Scatterv_c");
}

/* Between rank 0 and the others: arrays have an entry for each rank of the other group. */
static void move_between(void) {
  MPI_Comm half, both;
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 7, &both);
  const int others = rank > 0 ? 1 : size - 1;
  for (int i = 0; i < others; ++i) {
    wide_counts[i] = counts[i] = block;
    wide_places[i] = places[i] = i * block;
  }
  MPI_Allgatherv_c(in, block, MPI_INT, out, wide_counts, wide_places, MPI_INT, both);
  MPI_Allgatherv(in, block, MPI_INT, right, counts, places, MPI_INT, both);
  compare("MPI_Allgatherv_c between groups");
  /* From all others to rank 0. */
  const int root = rank == 0 ? MPI_ROOT : 0;
  MPI_Gatherv_c(in, block, MPI_INT, out, rank == 0 ? wide_counts : NULL,
                rank == 0 ? wide_places : nowhere, MPI_INT, root, both);
  MPI_Gatherv(in, block, MPI_INT, right, counts, places, MPI_INT, root, both);
  compare("MPI_Gatherv_c between groups");
  MPI_Scatterv_c(in, rank == 0 ? wide_counts : NULL, rank == 0 ? wide_places : nowhere, MPI_INT,
                 out, block, MPI_INT, root, both);
  MPI_Scatterv(in, counts, places, MPI_INT, right, block, MPI_INT, root, both);
  compare("MPI_Scatterv_c between groups");
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

static void handle(MPI_Comm* comm, int* error, ...) {
  (void)comm;
  (void)error;
  ++handled;
}

static void expect(int error, int wanted, const char* what) {
  int class = -1;
  MPI_Error_class(error, &class);
  check(class == wanted && handled == 1, what);
  handled = 0;
}

static void fail_counts(void) {
  const MPI_Count much = (MPI_Count)1 << 32;
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  expect(MPI_Bcast_c(out, much, MPI_BYTE, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "a count");
  lay_out(size);
  wide_counts[size - 1] = -much;
  expect(MPI_Reduce_scatter_c(in, out, wide_counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
         MPI_ERR_COUNT, "one of several counts");
  lay_out(size);
  wide_places[0] = much;
  expect(MPI_Allgatherv_c(in, rank % block, MPI_INT, out, wide_counts, wide_places, MPI_INT,
                          MPI_COMM_WORLD),
         MPI_ERR_COUNT, "a displacement");
  MPI_Errhandler_free(&handler);
}

static void fail_group(void) {
  MPI_Errhandler handler;
  MPI_Comm made = MPI_COMM_WORLD;
  MPI_Group group;
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  expect(MPI_Comm_create_from_group(group, "tag", MPI_INFO_NULL, handler, &made),
         MPI_ERR_UNSUPPORTED_OPERATION, "MPI_Comm_create_from_group");
  check(made == MPI_COMM_NULL, "no communicator");
  MPI_Group_free(&group);
  MPI_Errhandler_free(&handler);
}

static void report(void) {
#define MISSING(name) \
  if (!name && rank == 0) printf("missing: %s\n", #name);
  EACH(MISSING)
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < most * most * block; ++i) in[i] = 1000 * rank + i;
  const char* const what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "none") == 0) report();
  if (strcmp(what, "errors") == 0) fail_counts();
  if (strcmp(what, "group") == 0) fail_group();
  if (strcmp(what, "calls") == 0) {
    reduce(MPI_COMM_WORLD);
    move(MPI_COMM_WORLD);
    move_by_root(MPI_COMM_WORLD);
    move_between();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  printf("weak: %s on rank %d\n", failed ? "FAILED" : "all held", rank);
  MPI_Finalize();
  return failed;
}
