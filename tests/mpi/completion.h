// SPDX-License-Identifier: BSD-3-Clause
//
// Completes requests by MPI's functions in random order.
#pragma once

#include <mpi.h>

#include <vector>

#include "tests/mpi/harness.h"

namespace test {

// Which functions are drawn. any: all that wait for requests or test them.
enum class Completing : uint8_t { any, by_waits, by_tests };

// Calls one of these functions on some of the requests, perhaps among null ones, in random order.
// One that it completes becomes null. Fails if the function does not do what MPI says of it, or
// returns an error. Some must not be null.
void complete_some(const std::vector<MPI_Request*>& requests, Random& random,
                   Completing by = Completing::any);

}  // namespace test
