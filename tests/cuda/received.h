// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace test {

// The bytes that all TCP sockets of this process have received, between calls: all ranks of the
// world have come here (by MPI's own means, which must not be TCP), and none goes on before all
// have counted. Collective.
uint64_t received();

}  // namespace test
