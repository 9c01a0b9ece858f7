// SPDX-License-Identifier: BSD-3-Clause
#include <cfloat>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/reduce/isa.h"

// The vectoriser needs O3, and selects only where nobody looks at floating-point exception flags.
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#include "src/reduce/kernels.h"

namespace sluice {

constexpr KernelTable baseline_kernels = make_kernels();

}  // namespace sluice
