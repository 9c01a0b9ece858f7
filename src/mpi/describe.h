// SPDX-License-Identifier: BSD-3-Clause
//
// From an MPI function's arguments to an Exchange: one function for each row of the table
// (functions.h).
#pragma once

#include "src/mpi/exchange.h"
#include "src/mpi/functions.h"
#include "transports/transport.h"

namespace sluice {

// What a program called a function with. Roles which the function lacks are not set.
struct Arguments {
#define SLUICE_MEMBER(role) SLUICE_TYPE_##role role;
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
