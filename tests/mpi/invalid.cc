// SPDX-License-Identifier: BSD-3-Clause
//
// invalid return|handler FILE, invalid fatal NUMBER, invalid list: makes calls that MPI may reject,
// one per row, and records the error class, the error handlers called, and their communicator. The
// program does not know what is right: it runs with Sluice and without, and both must write the
// same to FILE.RANK. "fatal" makes one call under MPI_ERRORS_ARE_FATAL.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr int most_ranks = 16;

int rank = 0, size = 0;
double in[256], out[256];
int ones[most_ranks], negative[most_ranks], places[most_ranks];
MPI_Datatype uncommitted, derived;
MPI_Op user_op, freed_op;
MPI_Comm own, alone, freed_comm;

struct Row {
  const char* what;
  int (*call)(MPI_Comm comm);
};

// A row; `c` is the tested communicator.
#define ROW(function, ...)                                                                      \
  {                                                                                             \
#function "(" #__VA_ARGS__ ")", [](MPI_Comm c) { (void)c; return MPI_##function(__VA_ARGS__); } \
  }

// A call that differs from the communicator's last two calls only in its input buffer.
#define AGAIN(function, buffer, other, ...)                                              \
  {                                                                                      \
#function "(" #other ", " #__VA_ARGS__ "), after others", [](MPI_Comm c) {             \
      (void)c;                                                                           \
      for (int i = 0; i < 2; ++i) MPI_##function(buffer, __VA_ARGS__);                 \
      return MPI_##function(other, __VA_ARGS__);                                       \
    } \
  }

const MPI_Datatype& null_type() {
  static const MPI_Datatype null = MPI_DATATYPE_NULL;
  return null;
}
#define none null_type()

// A number, or a handle of another kind, in place of a handle: integers or pointers.
struct NoHandle {
  intptr_t value;
  template <typename Handle>
  operator Handle() const {  // NOLINT(google-explicit-constructor): it stands for any handle
    return (Handle)value;    // NOLINT(google-readability-casting): of either representation
  }
};

template <typename Value>
NoHandle as_handle(Value value) {
  return {(intptr_t)value};  // NOLINT(google-readability-casting)
}

constexpr int some = 4;

const Row reductions[] = {
    ROW(Allreduce, in, out, some, none, MPI_SUM, c),
    ROW(Allreduce, in, out, some, uncommitted, user_op, c),
    ROW(Allreduce, in, out, some, MPI_INT, MPI_OP_NULL, c),
    ROW(Allreduce, in, out, some, MPI_INT, MPI_REPLACE, c),
    ROW(Allreduce, in, out, some, MPI_INT, MPI_NO_OP, c),
    ROW(Allreduce, in, out, some, MPI_DOUBLE, MPI_BAND, c),
    ROW(Allreduce, in, out, some, MPI_INT, MPI_MINLOC, c),
    ROW(Allreduce, in, out, some, MPI_BYTE, MPI_SUM, c),
    ROW(Allreduce, in, out, some, MPI_C_BOOL, MPI_SUM, c),
    ROW(Allreduce, in, out, some, MPI_C_DOUBLE_COMPLEX, MPI_MAX, c),
    ROW(Allreduce, in, out, some, MPI_FLOAT_INT, MPI_SUM, c),
    ROW(Allreduce, in, out, some, derived, MPI_SUM, c),
    ROW(Allreduce, in, out, some, MPI_INT, MPI_SUM, MPI_COMM_NULL),
    ROW(Allreduce, in, in, some, MPI_INT, MPI_SUM, c),
    ROW(Allreduce, in, in, 1, MPI_INT, MPI_SUM, c),
    ROW(Allreduce, in, in, 0, MPI_INT, MPI_SUM, c),
    ROW(Allreduce, in, MPI_IN_PLACE, some, MPI_INT, MPI_SUM, c),
    ROW(Allreduce, in, out, 0, none, MPI_SUM, c),
    ROW(Allreduce, in, out, 0, MPI_DOUBLE, MPI_BAND, c),
    ROW(Reduce, in, out, some, none, MPI_SUM, 0, c),
    ROW(Reduce, in, out, some, uncommitted, user_op, 0, c),
    ROW(Reduce, in, out, some, MPI_INT, MPI_OP_NULL, 0, c),
    ROW(Reduce, in, out, some, MPI_DOUBLE, MPI_BXOR, 0, c),
    ROW(Reduce, in, out, some, MPI_DOUBLE, MPI_MAXLOC, 0, c),
    ROW(Reduce, in, out, some, derived, MPI_PROD, 0, c),
    ROW(Reduce, in, out, some, MPI_INT, MPI_SUM, size, c),
    ROW(Reduce, in, out, some, MPI_INT, MPI_SUM, -5, c),
    ROW(Reduce, in, out, some, MPI_INT, MPI_SUM, MPI_ROOT, c),
    ROW(Reduce, in, out, some, MPI_INT, MPI_SUM, MPI_PROC_NULL, c),
    ROW(Reduce, in, out, some, MPI_INT, MPI_SUM, 0, MPI_COMM_NULL),
    ROW(Reduce, in, in, some, MPI_INT, MPI_SUM, 0, alone),
    ROW(Reduce, in, in, 0, MPI_INT, MPI_SUM, 0, alone),
    ROW(Reduce, in, MPI_IN_PLACE, some, MPI_INT, MPI_SUM, 0, alone),
    ROW(Reduce_scatter, in, out, negative, MPI_INT, MPI_SUM, c),
    ROW(Reduce_scatter, in, out, ones, none, MPI_SUM, c),
    ROW(Reduce_scatter, in, out, ones, uncommitted, user_op, c),
    ROW(Reduce_scatter, in, out, ones, MPI_INT, MPI_OP_NULL, c),
    ROW(Reduce_scatter, in, out, ones, MPI_FLOAT, MPI_BOR, c),
    ROW(Reduce_scatter, in, out, ones, derived, MPI_SUM, c),
    ROW(Reduce_scatter, in, out, ones, MPI_INT, MPI_SUM, MPI_COMM_NULL),
    ROW(Reduce_scatter, in, in, ones, MPI_INT, MPI_SUM, c),
    ROW(Reduce_scatter, in, MPI_IN_PLACE, ones, MPI_INT, MPI_SUM, c),
    ROW(Reduce_scatter_block, in, out, 1, none, MPI_SUM, c),
    ROW(Reduce_scatter_block, in, out, 1, uncommitted, user_op, c),
    ROW(Reduce_scatter_block, in, out, 1, MPI_INT, MPI_OP_NULL, c),
    ROW(Reduce_scatter_block, in, out, 1, MPI_DOUBLE, MPI_BOR, c),
    ROW(Reduce_scatter_block, in, out, 1, derived, MPI_SUM, c),
    ROW(Reduce_scatter_block, in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL),
    ROW(Reduce_scatter_block, in, in, 1, MPI_INT, MPI_SUM, c),
    ROW(Reduce_scatter_block, in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, c),
};

// The rows of MPI_Scan and of MPI_Exscan, which gives rank 0 no result.
#define PREFIXES(function)                                            \
  ROW(function, in, out, some, none, MPI_SUM, c),                     \
      ROW(function, in, out, some, uncommitted, user_op, c),          \
      ROW(function, in, out, some, MPI_INT, MPI_OP_NULL, c),          \
      ROW(function, in, out, some, MPI_INT, MPI_REPLACE, c),          \
      ROW(function, in, out, some, MPI_DOUBLE, MPI_BAND, c),          \
      ROW(function, in, out, some, MPI_INT, MPI_MINLOC, c),           \
      ROW(function, in, out, some, derived, MPI_SUM, c),              \
      ROW(function, in, out, some, MPI_INT, MPI_SUM, MPI_COMM_NULL),  \
      ROW(function, in, in, some, MPI_INT, MPI_SUM, alone),           \
      ROW(function, in, in, 0, MPI_INT, MPI_SUM, c),                  \
      ROW(function, in, MPI_IN_PLACE, some, MPI_INT, MPI_SUM, alone), \
      ROW(function, in, out, 0, none, MPI_SUM, c),                    \
      ROW(function, in, out, 0, MPI_DOUBLE, MPI_BAND, c)

const Row prefixes[] = {PREFIXES(Scan), PREFIXES(Exscan),
                        ROW(Scan, in, in, some, MPI_INT, MPI_SUM, c),
                        ROW(Scan, in, MPI_IN_PLACE, some, MPI_INT, MPI_SUM, c)};

const Row moves[] = {
    ROW(Barrier, MPI_COMM_NULL),
    ROW(Bcast, in, some, none, 0, c),
    ROW(Bcast, in, some, uncommitted, 0, c),
    ROW(Bcast, in, 0, uncommitted, 0, c),
    ROW(Bcast, in, some, MPI_INT, size, c),
    ROW(Bcast, in, some, MPI_INT, -5, c),
    ROW(Bcast, in, some, MPI_INT, MPI_ROOT, c),
    ROW(Bcast, in, some, MPI_INT, 0, MPI_COMM_NULL),
    ROW(Allgather, in, some, none, out, some, MPI_INT, c),
    ROW(Allgather, in, some, MPI_INT, out, some, none, c),
    ROW(Allgather, in, some, uncommitted, out, some, MPI_INT, c),
    ROW(Allgather, in, some, MPI_INT, out, some, uncommitted, c),
    ROW(Allgather, in, some, MPI_INT, MPI_IN_PLACE, some, MPI_INT, c),
    ROW(Allgather, in, some, MPI_INT, in, some, MPI_INT, alone),
    ROW(Allgather, in + 2 * rank, some, MPI_INT, in, some, MPI_INT, c),
    ROW(Allgatherv, in, 1, none, out, ones, places, MPI_INT, c),
    ROW(Allgatherv, in, 1, MPI_INT, out, ones, places, none, c),
    ROW(Allgatherv, in, 1, uncommitted, out, ones, places, MPI_INT, c),
    ROW(Allgatherv, in, 1, MPI_INT, out, ones, places, uncommitted, c),
    ROW(Allgatherv, in, 1, MPI_INT, out, ones, places, MPI_INT, MPI_COMM_NULL),
    ROW(Allgatherv, in, 1, MPI_INT, MPI_IN_PLACE, ones, places, MPI_INT, c),
    ROW(Allgatherv, in, 1, MPI_INT, in, ones, places, MPI_INT, alone),
    ROW(Alltoall, in, 1, none, out, 1, MPI_INT, c),
    ROW(Alltoall, in, 1, MPI_INT, out, 1, none, c),
    ROW(Alltoall, in, 1, uncommitted, out, 1, MPI_INT, c),
    ROW(Alltoall, in, 1, MPI_INT, out, 1, uncommitted, c),
    ROW(Alltoall, in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_NULL),
    ROW(Alltoall, in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, c),
    ROW(Alltoall, in, 1, MPI_INT, in, 1, MPI_INT, c),
    ROW(Alltoallv, in, negative, places, MPI_INT, out, ones, places, MPI_INT, c),
    ROW(Alltoallv, in, ones, places, MPI_INT, out, negative, places, MPI_INT, c),
    ROW(Alltoallv, in, ones, places, none, out, ones, places, MPI_INT, c),
    ROW(Alltoallv, in, ones, places, MPI_INT, out, ones, places, none, c),
    ROW(Alltoallv, in, ones, places, uncommitted, out, ones, places, MPI_INT, c),
    ROW(Alltoallv, in, ones, places, MPI_INT, out, ones, places, uncommitted, c),
    ROW(Alltoallv, in, ones, places, MPI_INT, out, ones, places, MPI_INT, MPI_COMM_NULL),
    ROW(Alltoallv, in, ones, places, MPI_INT, MPI_IN_PLACE, ones, places, MPI_INT, c),
    ROW(Alltoallv, in, ones, places, MPI_INT, in, ones, places, MPI_INT, c),
};

// Errors that only the root notices are made on a communicator of one rank: others would wait.
const Row gathers[] = {
    ROW(Gather, in, some, none, out, some, MPI_INT, 0, c),
    ROW(Gather, in, some, uncommitted, out, some, MPI_INT, 0, c),
    ROW(Gather, in, 0, none, out, 0, MPI_INT, 0, c),
    ROW(Gather, in, 0, uncommitted, out, 0, MPI_INT, 0, c),
    ROW(Gather, in, some, MPI_INT, out, some, MPI_INT, size, c),
    ROW(Gather, in, some, MPI_INT, out, some, MPI_INT, -5, c),
    ROW(Gather, in, some, MPI_INT, out, some, MPI_INT, MPI_ROOT, c),
    ROW(Gather, in, some, MPI_INT, out, some, MPI_INT, MPI_PROC_NULL, c),
    ROW(Gather, in, some, MPI_INT, out, some, MPI_INT, 0, MPI_COMM_NULL),
    ROW(Gather, in, some, MPI_INT, out, some, none, 0, alone),
    ROW(Gather, in, some, MPI_INT, out, some, uncommitted, 0, alone),
    ROW(Gather, in, some, MPI_INT, MPI_IN_PLACE, some, MPI_INT, 0, alone),
    ROW(Gather, in, some, MPI_INT, in, some, MPI_INT, 0, alone),
    ROW(Gather, in, 0, MPI_INT, in, 0, MPI_INT, 0, alone),
    ROW(Gather, MPI_IN_PLACE, -1, none, out, some, MPI_INT, 0, alone),
    ROW(Gather, MPI_IN_PLACE, some, MPI_INT, out, some, none, 0, alone),
    ROW(Gatherv, in, 1, none, out, ones, places, MPI_INT, 0, c),
    ROW(Gatherv, in, 1, uncommitted, out, ones, places, MPI_INT, 0, c),
    ROW(Gatherv, in, 1, MPI_INT, out, ones, places, MPI_INT, size, c),
    ROW(Gatherv, in, 1, MPI_INT, out, ones, places, MPI_INT, -5, c),
    ROW(Gatherv, in, 1, MPI_INT, out, ones, places, MPI_INT, 0, MPI_COMM_NULL),
    ROW(Gatherv, in, 1, MPI_INT, out, negative, places, MPI_INT, 0, alone),
    ROW(Gatherv, in, 1, MPI_INT, out, ones, places, none, 0, alone),
    ROW(Gatherv, in, 1, MPI_INT, out, ones, places, uncommitted, 0, alone),
    ROW(Gatherv, in, 1, MPI_INT, MPI_IN_PLACE, ones, places, MPI_INT, 0, alone),
    ROW(Gatherv, in, 1, MPI_INT, in, ones, places, MPI_INT, 0, alone),
    ROW(Gatherv, MPI_IN_PLACE, -1, none, out, ones, places, MPI_INT, 0, alone),
};

const Row scatters[] = {
    ROW(Scatter, in, some, MPI_INT, out, some, none, 0, c),
    ROW(Scatter, in, some, MPI_INT, out, some, uncommitted, 0, c),
    ROW(Scatter, in, 0, MPI_INT, out, 0, none, 0, c),
    ROW(Scatter, in, 0, MPI_INT, out, 0, uncommitted, 0, c),
    ROW(Scatter, in, some, MPI_INT, out, some, MPI_INT, size, c),
    ROW(Scatter, in, some, MPI_INT, out, some, MPI_INT, -5, c),
    ROW(Scatter, in, some, MPI_INT, out, some, MPI_INT, MPI_ROOT, c),
    ROW(Scatter, in, some, MPI_INT, out, some, MPI_INT, MPI_PROC_NULL, c),
    ROW(Scatter, in, some, MPI_INT, out, some, MPI_INT, 0, MPI_COMM_NULL),
    ROW(Scatter, in, some, none, out, some, MPI_INT, 0, alone),
    ROW(Scatter, in, some, uncommitted, out, some, MPI_INT, 0, alone),
    ROW(Scatter, MPI_IN_PLACE, some, MPI_INT, out, some, MPI_INT, 0, alone),
    ROW(Scatter, in, some, MPI_INT, in, some, MPI_INT, 0, alone),
    ROW(Scatter, in, 0, MPI_INT, in, 0, MPI_INT, 0, alone),
    ROW(Scatter, in, some, MPI_INT, MPI_IN_PLACE, -1, none, 0, alone),
    ROW(Scatter, in, some, none, MPI_IN_PLACE, some, MPI_INT, 0, alone),
    ROW(Scatterv, in, ones, places, MPI_INT, out, 1, none, 0, c),
    ROW(Scatterv, in, ones, places, MPI_INT, out, 1, uncommitted, 0, c),
    ROW(Scatterv, in, ones, places, MPI_INT, out, 1, MPI_INT, size, c),
    ROW(Scatterv, in, ones, places, MPI_INT, out, 1, MPI_INT, -5, c),
    ROW(Scatterv, in, ones, places, MPI_INT, out, 1, MPI_INT, 0, MPI_COMM_NULL),
    ROW(Scatterv, in, negative, places, MPI_INT, out, 1, MPI_INT, 0, alone),
    ROW(Scatterv, in, ones, places, none, out, 1, MPI_INT, 0, alone),
    ROW(Scatterv, in, ones, places, uncommitted, out, 1, MPI_INT, 0, alone),
    ROW(Scatterv, MPI_IN_PLACE, ones, places, MPI_INT, out, 1, MPI_INT, 0, alone),
    ROW(Scatterv, in, ones, places, MPI_INT, in, 1, MPI_INT, 0, alone),
    ROW(Scatterv, in, ones, places, MPI_INT, MPI_IN_PLACE, -1, none, 0, alone),
};

int* own_block() { return reinterpret_cast<int*>(out) + rank; }

const Row repeats[] = {
    AGAIN(Allreduce, in, out, out, some, MPI_INT, MPI_SUM, c),
    AGAIN(Reduce_scatter, in, out, out, ones, MPI_INT, MPI_SUM, c),
    AGAIN(Reduce_scatter_block, in, out, out, 1, MPI_INT, MPI_SUM, c),
    AGAIN(Scan, in, out, out, some, MPI_INT, MPI_SUM, c),
    AGAIN(Exscan, in, out, out, some, MPI_INT, MPI_SUM, alone),
    AGAIN(Allgather, in, own_block(), 1, MPI_INT, out, 1, MPI_INT, c),
    AGAIN(Allgatherv, in, own_block(), 1, MPI_INT, out, ones, places, MPI_INT, c),
    AGAIN(Gather, in, out, 1, MPI_INT, out, 1, MPI_INT, 0, alone),
    AGAIN(Gatherv, in, out, 1, MPI_INT, out, ones, places, MPI_INT, 0, alone),
    AGAIN(Scatter, in, out, 1, MPI_INT, out, 1, MPI_INT, 0, alone),
    AGAIN(Scatterv, in, out, ones, places, MPI_INT, out, 1, MPI_INT, 0, alone),
    AGAIN(Alltoall, in, out, 1, MPI_INT, out, 1, MPI_INT, c),
    AGAIN(Alltoallv, in, out, ones, places, MPI_INT, out, ones, places, MPI_INT, c),
};

#ifdef OPEN_MPI
// Rows that crash MPICH 4.0.2, or have it wait. (An error that ranks other than the root alone
// notice comes with another one on rank 0, which would wait for them.)
const Row of_one_mpi[] = {
    ROW(Allreduce, in, out, -1, MPI_INT, MPI_SUM, c),
    ROW(Allreduce, in, out, -1, none, MPI_OP_NULL, c),
    ROW(Reduce, in, out, -1, MPI_INT, MPI_SUM, 0, c),
    ROW(Reduce, rank == 0 ? in : MPI_IN_PLACE, rank == 0 ? MPI_IN_PLACE : out, some, MPI_INT,
        MPI_SUM, 0, c),
    ROW(Reduce_scatter, in, out, nullptr, MPI_INT, MPI_SUM, c),
    ROW(Reduce_scatter_block, in, out, -1, MPI_INT, MPI_SUM, c),
    ROW(Scan, in, out, -1, MPI_INT, MPI_SUM, c),
    ROW(Exscan, in, out, -1, MPI_INT, MPI_SUM, c),
    ROW(Bcast, in, -1, MPI_INT, 0, c),
    ROW(Bcast, MPI_IN_PLACE, some, MPI_INT, 0, c),
    ROW(Allgather, in, -1, MPI_INT, out, some, MPI_INT, c),
    ROW(Allgather, in, some, MPI_INT, out, -1, MPI_INT, c),
    ROW(Allgatherv, in, -1, MPI_INT, out, ones, places, MPI_INT, c),
    ROW(Allgatherv, in, 1, MPI_INT, out, ones, nullptr, MPI_INT, c),
    ROW(Gather, in, -1, MPI_INT, out, 1, MPI_INT, 0, c),
    ROW(Gather, rank == 0 ? in : MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, rank == 0 ? -5 : 0, c),
    ROW(Gather, in, 1, MPI_INT, out, -1, MPI_INT, 0, alone),
    ROW(Gatherv, in, -1, MPI_INT, out, ones, places, MPI_INT, 0, c),
    ROW(Gatherv, in, 1, MPI_INT, out, nullptr, places, MPI_INT, 0, alone),
    ROW(Gatherv, in, 1, MPI_INT, out, ones, nullptr, MPI_INT, 0, alone),
    ROW(Scatter, in, 1, MPI_INT, out, -1, MPI_INT, 0, c),
    ROW(Scatter, in, 1, MPI_INT, rank == 0 ? out : MPI_IN_PLACE, 1, MPI_INT, rank == 0 ? -5 : 0, c),
    ROW(Scatterv, in, ones, places, MPI_INT, out, -1, MPI_INT, 0, c),
    ROW(Scatterv, in, nullptr, places, MPI_INT, out, 1, MPI_INT, 0, alone),
    ROW(Scatterv, in, ones, nullptr, MPI_INT, out, 1, MPI_INT, 0, alone),
    ROW(Alltoall, in, -1, MPI_INT, out, 1, MPI_INT, c),
    ROW(Alltoall, in, 1, MPI_INT, out, -1, MPI_INT, c),
    ROW(Alltoallv, in, nullptr, places, MPI_INT, out, ones, places, MPI_INT, c),
    ROW(Alltoallv, in, ones, places, MPI_INT, out, ones, nullptr, MPI_INT, c),
};
#else
// Rows that crash Open MPI 4.1.4, which checks neither buffers nor the values of handles.
const Row of_one_mpi[] = {
    ROW(Allgather, in, some, MPI_INT, out, some, MPI_INT, MPI_COMM_NULL),
    ROW(Allgatherv, in, 1, MPI_INT, out, negative, places, MPI_INT, c),
    ROW(Allreduce, nullptr, out, some, MPI_INT, MPI_SUM, c),
    ROW(Allreduce, in, nullptr, some, MPI_INT, MPI_SUM, c),
    ROW(Allreduce, nullptr, nullptr, 0, MPI_INT, MPI_SUM, c),
    ROW(Allreduce, MPI_IN_PLACE, nullptr, some, MPI_INT, MPI_SUM, c),
    ROW(Allreduce, in, out, some, MPI_INT, freed_op, c),
    ROW(Allreduce, in, out, some, MPI_INT, as_handle(12345), c),
    ROW(Allreduce, in, out, some, as_handle(12345), MPI_SUM, c),
    ROW(Allreduce, in, out, some, MPI_INT, as_handle(MPI_INT), c),
    ROW(Allreduce, in, out, some, as_handle(MPI_SUM), MPI_SUM, c),
    ROW(Allreduce, in, out, some, MPI_INT, MPI_SUM, as_handle(12345)),
    ROW(Allreduce, in, out, some, MPI_INT, MPI_SUM, freed_comm),
    ROW(Allreduce, in, out, some, MPI_INT, MPI_SUM, as_handle(MPI_INT)),
    ROW(Reduce, nullptr, out, some, MPI_INT, MPI_SUM, 0, alone),
    ROW(Reduce, in, nullptr, some, MPI_INT, MPI_SUM, 0, alone),
    ROW(Reduce_scatter, nullptr, out, ones, MPI_INT, MPI_SUM, c),
    ROW(Reduce_scatter, in, nullptr, ones, MPI_INT, MPI_SUM, c),
    ROW(Reduce_scatter_block, nullptr, out, 1, MPI_INT, MPI_SUM, c),
    ROW(Reduce_scatter_block, in, nullptr, 1, MPI_INT, MPI_SUM, c),
    ROW(Scan, nullptr, out, some, MPI_INT, MPI_SUM, c),
    ROW(Scan, in, nullptr, some, MPI_INT, MPI_SUM, c),
    ROW(Exscan, nullptr, out, some, MPI_INT, MPI_SUM, c),
    ROW(Exscan, in, nullptr, some, MPI_INT, MPI_SUM, alone),
    ROW(Barrier, as_handle(12345)),
    ROW(Barrier, freed_comm),
    ROW(Bcast, nullptr, some, MPI_INT, 0, c),
    ROW(Bcast, in, some, as_handle(12345), 0, c),
    ROW(Bcast, in, some, as_handle(MPI_SUM), 0, c),
    ROW(Allgather, nullptr, some, MPI_INT, out, some, MPI_INT, c),
    ROW(Allgather, in, some, MPI_INT, nullptr, some, MPI_INT, c),
    ROW(Allgather, in, some, as_handle(12345), out, some, MPI_INT, c),
    ROW(Allgather, in, some, MPI_INT, out, some, as_handle(12345), c),
    ROW(Allgatherv, nullptr, 1, MPI_INT, out, ones, places, MPI_INT, c),
    ROW(Allgatherv, in, 1, MPI_INT, nullptr, ones, places, MPI_INT, c),
    ROW(Gather, nullptr, some, MPI_INT, out, some, MPI_INT, 0, alone),
    ROW(Gather, in, some, MPI_INT, nullptr, some, MPI_INT, 0, alone),
    ROW(Gather, in, some, as_handle(12345), out, some, MPI_INT, 0, c),
    ROW(Gather, in, some, MPI_INT, out, some, as_handle(12345), 0, alone),
    ROW(Gather, in, some, MPI_INT, out, some, MPI_INT, 0, freed_comm),
    ROW(Gatherv, nullptr, 1, MPI_INT, out, ones, places, MPI_INT, 0, alone),
    ROW(Gatherv, in, 1, MPI_INT, nullptr, ones, places, MPI_INT, 0, alone),
    ROW(Scatter, nullptr, some, MPI_INT, out, some, MPI_INT, 0, alone),
    ROW(Scatter, in, some, MPI_INT, nullptr, some, MPI_INT, 0, alone),
    ROW(Scatter, in, some, MPI_INT, out, some, as_handle(12345), 0, c),
    ROW(Scatter, in, some, as_handle(12345), out, some, MPI_INT, 0, alone),
    ROW(Scatter, in, some, MPI_INT, out, some, MPI_INT, 0, freed_comm),
    ROW(Scatterv, nullptr, ones, places, MPI_INT, out, 1, MPI_INT, 0, alone),
    ROW(Scatterv, in, ones, places, MPI_INT, nullptr, 1, MPI_INT, 0, alone),
    ROW(Alltoall, nullptr, 1, MPI_INT, out, 1, MPI_INT, c),
    ROW(Alltoall, in, 1, MPI_INT, nullptr, 1, MPI_INT, c),
    ROW(Alltoallv, nullptr, ones, places, MPI_INT, out, ones, places, MPI_INT, c),
    ROW(Alltoallv, in, ones, places, MPI_INT, nullptr, ones, places, MPI_INT, c),
#if MPI_VERSION >= 4
    ROW(Allreduce_c, in, out, some, none, MPI_SUM, c),
    ROW(Allreduce_c, in, in, some, MPI_INT, MPI_SUM, c),
    ROW(Reduce_c, in, out, some, MPI_INT, MPI_SUM, size, c),
    ROW(Scan_c, in, out, some, none, MPI_SUM, c),
    ROW(Exscan_c, in, out, some, MPI_INT, MPI_OP_NULL, c),
    ROW(Bcast_c, in, some, uncommitted, 0, c),
    ROW(Alltoall_c, in, some, none, out, some, MPI_INT, c),
    ROW(Gather_c, in, some, none, out, some, MPI_INT, 0, c),
    ROW(Scatter_c, in, some, MPI_INT, out, some, MPI_INT, size, c),
#endif
};
#endif

// Whether MPI itself crashes: of a library with MPI 5's ABI, MPICH 5.0.1 does for numbers that are
// no handles, and in reductions of null types.
bool crashes_mpi([[maybe_unused]] const Row& row) {
#ifdef MPI_ABI_VERSION
  const std::string what = row.what;
  const bool reduces = what.starts_with("Allreduce") || what.starts_with("Reduce") ||
                       what.starts_with("Scan") || what.starts_with("Exscan");
  return what.find("as_handle(12345)") != std::string::npos ||
         (reduces && what.find(", none, MPI_SUM, ") != std::string::npos) ||
         (reduces && what.find("as_handle(MPI_SUM)") != std::string::npos);
#else
  return false;
#endif
}

std::vector<Row> all_rows() {
  std::vector<Row> rows(std::begin(reductions), std::end(reductions));
  rows.insert(rows.end(), std::begin(prefixes), std::end(prefixes));
  rows.insert(rows.end(), std::begin(moves), std::end(moves));
  rows.insert(rows.end(), std::begin(gathers), std::end(gathers));
  rows.insert(rows.end(), std::begin(scatters), std::end(scatters));
  rows.insert(rows.end(), std::begin(repeats), std::end(repeats));
  rows.insert(rows.end(), std::begin(of_one_mpi), std::end(of_one_mpi));
  std::erase_if(rows, crashes_mpi);
  return rows;
}

// What the error handlers recorded in the last call.
std::string seen;

std::string name_of(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD) return "MPI_COMM_WORLD";
  if (comm == MPI_COMM_SELF) return "MPI_COMM_SELF";
  return comm == own || comm == alone ? "its own" : "another";
}

int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

template <int whose>
void note(MPI_Comm* comm, int* code, ...) {
  const char* const handlers[] = {"own", "world's", "self's"};
  seen += std::string("; the ") + handlers[whose] + " handler is called for " + name_of(*comm) +
          " with class " + std::to_string(class_of(*code));
}

template <int whose>
void handle_errors_of(MPI_Comm comm, bool noting) {
  MPI_Errhandler handler = MPI_ERRORS_RETURN;
  if (noting) MPI_Comm_create_errhandler(note<whose>, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  if (noting) MPI_Errhandler_free(&handler);
}

void keep_right(void*, void*, int*, MPI_Datatype*) {}

void make_objects() {
  for (int i = 0; i < most_ranks; ++i) {
    ones[i] = 1;
    negative[i] = -1;
    places[i] = i;
  }
  MPI_Type_contiguous(1, MPI_INT, &uncommitted);
  MPI_Type_vector(2, 1, 2, MPI_INT, &derived);
  MPI_Type_commit(&derived);
  MPI_Op_create(keep_right, 1, &user_op);
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_dup(MPI_COMM_SELF, &alone);
  MPI_Op op;
  MPI_Op_create(keep_right, 1, &op);
  freed_op = op;
  MPI_Op_free(&op);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  freed_comm = comm;
  MPI_Comm_free(&comm);
}

void free_objects() {
  MPI_Op_free(&user_op);
  MPI_Type_free(&uncommitted);
  MPI_Type_free(&derived);
  MPI_Comm_free(&own);
  MPI_Comm_free(&alone);
}

// A valid call, made after each invalid one.
bool sum_up() {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own);
  return sum == size;
}

void go_through(const std::vector<Row>& rows, bool noting, const std::string& path) {
  handle_errors_of<0>(own, noting);
  handle_errors_of<0>(alone, noting);
  handle_errors_of<1>(MPI_COMM_WORLD, noting);
  handle_errors_of<2>(MPI_COMM_SELF, noting);
  FILE* const account = std::fopen((path + "." + std::to_string(rank)).c_str(), "w");
  for (const Row& row : rows) {
    std::fprintf(account, "%s: ", row.what);
    std::fflush(account);  // in case the call crashes
    seen.clear();
    const int error_class = class_of(row.call(own));
    std::fprintf(account, "class %d%s%s\n", error_class, seen.c_str(),
                 sum_up() ? "" : "; a wrong sum");
  }
  std::fclose(account);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "", argument = argc > 2 ? argv[2] : "";
  const std::vector<Row> rows = all_rows();
  for (size_t i = 0; mode == "list" && i < rows.size(); ++i)
    std::printf("%zu %s\n", i, rows[i].what);
  if (mode == "list") return 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  make_objects();
  sum_up();
  if (mode == "fatal") {
    const int result = rows.at(std::stoul(argument)).call(own);
    std::printf("goes on, with class %d\n", class_of(result));
  } else {
    go_through(rows, mode == "handler", argument);
  }
  free_objects();
  MPI_Finalize();
}
