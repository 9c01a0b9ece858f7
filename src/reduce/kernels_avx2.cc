// SPDX-License-Identifier: BSD-3-Clause
#include <cfloat>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/reduce/isa.h"

#ifdef SLUICE_HAVE_AVX2_KERNELS
#include <immintrin.h>

// After all other headers, so that none of their code is compiled for this target.
#pragma GCC target("avx2,f16c")
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#include "src/reduce/kernels.h"

namespace sluice {

constexpr KernelTable avx2_kernels = make_kernels();

}  // namespace sluice

#endif
