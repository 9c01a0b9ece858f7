// SPDX-License-Identifier: BSD-3-Clause
//
// From an MPI function's arguments to an Exchange: one function for each row of the table
// (functions.h).
#pragma once

#include "src/mpi/exchange.h"
#include "src/mpi/functions.h"
#include "transports/transport.h"

namespace sluice {

// The type of each role's arguments, given those of counts and displacements.
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

// What a program called a function with, of either kind. Roles which the function lacks are not
// set.
struct Arguments {
  using Either = Roles<MPI_Count, Numbers, Numbers>;
#define SLUICE_MEMBER(role) Either::role role;
  SLUICE_ROLES(SLUICE_MEMBER)
#undef SLUICE_MEMBER
};

// The communicator's part in the meaning of arguments.
struct Place {
  Rank rank, size;
};

// Each returns false where the call is MPI's: reductions that MPI does not define, which is the
// same on all ranks; and arguments that make no sense, for which MPI has its own errors. Nothing
// here depends on whether a type is contiguous or a buffer aligned, for that differs between the
// ranks of one call.
#define SLUICE_DESCRIBE(function, ...) \
  bool describe_##function(const Arguments& arguments, Place place, Exchange* exchange);
SLUICE_COLLECTIVES(SLUICE_DESCRIBE)
#undef SLUICE_DESCRIBE

}  // namespace sluice
