// SPDX-License-Identifier: BSD-3-Clause
//
// The table of MPI functions that Sluice stands in for: a row for each, with its parameters in
// MPI's order, named by the role they play. From it come the entries MPI_X and PMPI_X (entries.cc),
// the pointers to the real functions that calls pass through to (real.h), and the form that a call
// has inside (Arguments in describe.h).
#pragma once

// ROW(function, roles...). MPI_X is described to the engine by the overload of `describe` for it
// (describe.h).
#define SLUICE_COLLECTIVES(ROW)                                                                  \
  ROW(Allreduce, sendbuf, recvbuf, count, datatype, op, comm)                                    \
  ROW(Reduce, sendbuf, recvbuf, count, datatype, op, root, comm)                                 \
  ROW(Bcast, buffer, count, datatype, root, comm)                                                \
  ROW(Barrier, comm)                                                                             \
  ROW(Allgather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)               \
  ROW(Allgatherv, sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm)    \
  ROW(Alltoall, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)                \
  ROW(Alltoallv, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, \
      comm)                                                                                      \
  ROW(Reduce_scatter, sendbuf, recvbuf, recvcounts, datatype, op, comm)                          \
  ROW(Reduce_scatter_block, sendbuf, recvbuf, recvcount, datatype, op, comm)

// Every role, and its C type.
#define SLUICE_ROLES(M)                                                                         \
  SLUICE_EACH(M, sendbuf, recvbuf, buffer, count, sendcount, recvcount, sendcounts, recvcounts, \
              sdispls, rdispls, datatype, sendtype, recvtype, op, root, comm)
#define SLUICE_TYPE_sendbuf const void*
#define SLUICE_TYPE_recvbuf void*
#define SLUICE_TYPE_buffer void*
#define SLUICE_TYPE_count int
#define SLUICE_TYPE_sendcount int
#define SLUICE_TYPE_recvcount int
#define SLUICE_TYPE_sendcounts const int*
#define SLUICE_TYPE_recvcounts const int*
#define SLUICE_TYPE_sdispls const int*
#define SLUICE_TYPE_rdispls const int*
#define SLUICE_TYPE_datatype MPI_Datatype
#define SLUICE_TYPE_sendtype MPI_Datatype
#define SLUICE_TYPE_recvtype MPI_Datatype
#define SLUICE_TYPE_op MPI_Op
#define SLUICE_TYPE_root int
#define SLUICE_TYPE_comm MPI_Comm

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

// "int count": a role as a parameter.
#define SLUICE_PARAMETER(role) SLUICE_TYPE_##role role
#define SLUICE_PARAMETERS(...) SLUICE_LIST(SLUICE_PARAMETER, __VA_ARGS__)
