// SPDX-License-Identifier: BSD-3-Clause
//
// The table of the MPI collectives that Sluice implements: a row for each, with its parameters in
// MPI's order, named by role. It generates the functions that programs call (entries.cc), the
// pointers to the MPI library's functions (real.h), and the struct Arguments (describe.h).
#pragma once

// ROW(function, roles...). describe_X (describe.h) translates the arguments of MPI_X for the
// engine.
#define SLUICE_COLLECTIVES(ROW) \
  ROW(Barrier, comm)            \
  SLUICE_COUNTING_COLLECTIVES(ROW)
// Those with counts also exist as MPI_X_c, with 64-bit counts and displacements, since MPI 4.
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
  ROW(Reduce_scatter_block, sendbuf, recvbuf, recvcount, datatype, op, comm)                     \
  ROW(Scan, sendbuf, recvbuf, count, datatype, op, comm)                                         \
  ROW(Exscan, sendbuf, recvbuf, count, datatype, op, comm)                                       \
  ROW(Gather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)            \
  ROW(Gatherv, sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, root, comm) \
  ROW(Scatter, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)           \
  ROW(Scatterv, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcount, recvtype, root, comm)

// The name of a row's non-blocking function: of Bcast, Ibcast.
#define SLUICE_NONBLOCKING(function) SLUICE_NONBLOCKING_##function
#define SLUICE_NONBLOCKING_Barrier Ibarrier
#define SLUICE_NONBLOCKING_Allreduce Iallreduce
#define SLUICE_NONBLOCKING_Reduce Ireduce
#define SLUICE_NONBLOCKING_Bcast Ibcast
#define SLUICE_NONBLOCKING_Allgather Iallgather
#define SLUICE_NONBLOCKING_Allgatherv Iallgatherv
#define SLUICE_NONBLOCKING_Alltoall Ialltoall
#define SLUICE_NONBLOCKING_Alltoallv Ialltoallv
#define SLUICE_NONBLOCKING_Reduce_scatter Ireduce_scatter
#define SLUICE_NONBLOCKING_Reduce_scatter_block Ireduce_scatter_block
#define SLUICE_NONBLOCKING_Scan Iscan
#define SLUICE_NONBLOCKING_Exscan Iexscan
#define SLUICE_NONBLOCKING_Gather Igather
#define SLUICE_NONBLOCKING_Gatherv Igatherv
#define SLUICE_NONBLOCKING_Scatter Iscatter
#define SLUICE_NONBLOCKING_Scatterv Iscatterv

// The name of a row's persistent function: of Bcast, Bcast_init.
#define SLUICE_PERSISTENT(function) function##_init

// Every role. Their C types are in Roles (describe.h).
#define SLUICE_ROLES(M)                                                                         \
  SLUICE_EACH(M, sendbuf, recvbuf, buffer, count, sendcount, recvcount, sendcounts, recvcounts, \
              sdispls, rdispls, datatype, sendtype, recvtype, op, root, comm)

// SLUICE_EACH(M, a, b, c) is M(a) M(b) M(c), for up to about 60 arguments; SLUICE_LIST puts commas
// between.
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
