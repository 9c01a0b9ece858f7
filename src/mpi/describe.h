// SPDX-License-Identifier: BSD-3-Clause
//
// Turns the arguments of an MPI function into an Exchange: one function for each row of the table
// (functions.h).
#pragma once

#include "src/mpi/exchange.h"
#include "src/mpi/functions.h"
#include "transports/transport.h"

namespace sluice {

// The C type of each role, for given types of counts and of displacements.
template <typename Count, typename Counts, typename Displacements>
struct Roles {
  using sendbuf = const void*;
  using recvbuf = void*;
  using buffer = void*;
  using count = Count;
  using sendcount = Count;
  using recvcount = Count;
  using sendcounts = Counts;
  using recvcounts = Counts;
  using sdispls = Displacements;
  using rdispls = Displacements;
  using datatype = MPI_Datatype;
  using sendtype = MPI_Datatype;
  using recvtype = MPI_Datatype;
  using op = MPI_Op;
  using root = int;
  using comm = MPI_Comm;
};
using SmallRoles = Roles<int, const int*, const int*>;                   // of MPI_X
using LargeRoles = Roles<MPI_Count, const MPI_Count*, const MPI_Aint*>;  // of MPI_X_c

// The arguments of a call of MPI_X or MPI_X_c. Members for roles that the function lacks are not
// set.
struct Arguments {
  using Either = Roles<MPI_Count, Numbers, Numbers>;
#define SLUICE_MEMBER(role) Either::role role;
  SLUICE_ROLES(SLUICE_MEMBER)
#undef SLUICE_MEMBER
};

// This rank in its communicator.
struct Position {
  Rank rank, size;
};

// Each returns false if MPI must do the call: for reductions that MPI does not define, on all ranks
// alike; and for invalid arguments, for which each MPI has its own errors. A fault on this rank
// alone that MPI may accept is Exchange::refusal. The result must not depend on whether a type is
// contiguous or a buffer aligned: that differs between the ranks of one call. May throw
// std::bad_alloc.
#define SLUICE_DESCRIBE(function, ...) \
  bool describe_##function(const Arguments& arguments, Position position, Exchange* exchange);
SLUICE_COLLECTIVES(SLUICE_DESCRIBE)
#undef SLUICE_DESCRIBE

}  // namespace sluice
