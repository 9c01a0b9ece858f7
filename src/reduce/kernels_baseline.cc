// SPDX-License-Identifier: BSD-3-Clause
#include <cfloat>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/reduce/isa.h"

#ifdef __F16C__  // where the whole library is compiled for such a processor (-march=native)
#include <immintrin.h>
#endif

// Vectorisation needs O3. It turns branches into selects only with no-trapping-math.
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#include "src/reduce/kernels.h"

namespace sluice {

constexpr KernelTable baseline_kernels = make_kernels();

}  // namespace sluice
