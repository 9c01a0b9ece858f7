// SPDX-License-Identifier: BSD-3-Clause
//
// What the functions that programs call are made of (entries.cc, nonblocking_entries.cc).
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include "src/mpi/describe.h"
#include "src/mpi/functions.h"
#include "src/mpi/narrow_floats.h"

namespace sluice {

// Becomes the array that a parameter of MPI's takes.
struct ArrayForMpi {
  Numbers numbers;
  template <std::signed_integral T>
  operator const T*() const {
    return numbers.as<T>();
  }
};

// An argument in the form to pass to MPI: operations on Sluice's own types are replaced.
template <bool is_op, typename T>
auto for_mpi(const Arguments& arguments, T argument) {
  if constexpr (is_op) {
    return operation_for_mpi(arguments.datatype, argument);
  } else if constexpr (std::is_same_v<T, Numbers>) {
    return ArrayForMpi{argument};
  } else {
    return argument;
  }
}

}  // namespace sluice

#define SLUICE_ASSIGN(role) arguments.role = role;
#define SLUICE_OF_PROBE(role) probe.role
#define SLUICE_FOR_MPI(role) sluice::for_mpi<std::string_view(#role) == "op">(arguments, role)

#define SLUICE_SMALL(role) sluice::SmallRoles::role role
#define SLUICE_LARGE(role) sluice::LargeRoles::role role
