// SPDX-License-Identifier: BSD-3-Clause
//
// The table of MPI functions that Sluice stands in for: a row for each, with its parameters in
// MPI's order, named by the role they play. From it come the entries MPI_X and PMPI_X (entries.cc),
// the pointers to the real functions that calls pass through to (real.h), and the form that a call
// has inside (Arguments in describe.h).
#pragma once

// ROW(function, roles...). MPI_X is described to the engine by the overload of `describe` for it
// (describe.h).
#define SLUICE_COLLECTIVES(ROW) \
  ROW(Barrier, comm)            \
  SLUICE_COUNTING_COLLECTIVES(ROW)
#define SLUICE_COUNTING_COLLECTIVES(ROW)                                                         \
  ROW(Allreduce, sendbuf, recvbuf, count, datatype, op, comm)                                    \
  ROW(Reduce, sendbuf, recvbuf, count, datatype, op, root, comm)                                 \
  ROW(Bcast, buffer, count, datatype, root, comm)                                                \
  ROW(Allgather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)               \
  ROW(Allgatherv, sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm)    \
  ROW(Alltoall, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)                \
  ROW(Alltoallv, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, \
      comm)                                                                                      \
  ROW(Reduce_scatter, sendbuf, recvbuf, recvcounts, datatype, op, comm)                          \
  ROW(Reduce_scatter_block, sendbuf, recvbuf, recvcount, datatype, op, comm)

// Those that also exist as MPI_X_c, with counts and displacements of 64 bits (configure looks
// whether the MPI has them).
#ifdef SLUICE_LARGE_COUNTS
#define SLUICE_LARGE_COLLECTIVES(ROW) SLUICE_COUNTING_COLLECTIVES(ROW)
#else
#define SLUICE_LARGE_COLLECTIVES(ROW)
#endif

// Every role; the types are those of Roles in describe.h.
#define SLUICE_ROLES(M)                                                                         \
  SLUICE_EACH(M, sendbuf, recvbuf, buffer, count, sendcount, recvcount, sendcounts, recvcounts, \
              sdispls, rdispls, datatype, sendtype, recvtype, op, root, comm)

// SLUICE_EACH(M, a, b, c) is M(a) M(b) M(c), for up to some 60; SLUICE_LIST puts commas between.
#define SLUICE_PARENTHESES ()
#define SLUICE_EXPAND(...) \
  SLUICE_EXPAND_A(SLUICE_EXPAND_A(SLUICE_EXPAND_A(SLUICE_EXPAND_A(__VA_ARGS__))))
#define SLUICE_EXPAND_A(...) \
  SLUICE_EXPAND_B(SLUICE_EXPAND_B(SLUICE_EXPAND_B(SLUICE_EXPAND_B(__VA_ARGS__))))
#define SLUICE_EXPAND_B(...) \
  SLUICE_EXPAND_C(SLUICE_EXPAND_C(SLUICE_EXPAND_C(SLUICE_EXPAND_C(__VA_ARGS__))))
#define SLUICE_EXPAND_C(...) __VA_ARGS__
#define SLUICE_EACH(M, ...) SLUICE_EXPAND(SLUICE_EACH_STEP(M, __VA_ARGS__))
#define SLUICE_EACH_STEP(M, first, ...) \
  M(first) __VA_OPT__(SLUICE_EACH_AGAIN SLUICE_PARENTHESES(M, __VA_ARGS__))
#define SLUICE_EACH_AGAIN() SLUICE_EACH_STEP
#define SLUICE_LIST(M, ...) SLUICE_EXPAND(SLUICE_LIST_STEP(M, __VA_ARGS__))
#define SLUICE_LIST_STEP(M, first, ...) \
  M(first) __VA_OPT__(, SLUICE_LIST_AGAIN SLUICE_PARENTHESES(M, __VA_ARGS__))
#define SLUICE_LIST_AGAIN() SLUICE_LIST_STEP
