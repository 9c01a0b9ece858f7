// SPDX-License-Identifier: BSD-3-Clause
//
// The host kernels are compiled once for every level of vector instructions, from one source
// (kernels.h), and the best that the processor has is taken when a kernel is first asked for. All
// levels give the same bits; the unit tests compare them, which is why they can be named.
//
// AVX-512 is not among them: on 64 KiB in cache it moved 70% of what AVX2 did out of place and as
// much in place (Zen 4), and beyond the cache memory is the limit.
#pragma once

#include <cstdint>
#include <span>

#include "src/reduce/kernel.h"

namespace sluice {

enum class Isa : uint8_t { baseline, avx2 };

struct KernelTable {
  ReduceKernel at[op_count][type_count];
};

// Those that were built and that this processor has, the best last; `baseline` is always there.
std::span<const Isa> usable_isas();

// As find_kernel(op, type), of a level that is usable.
ReduceKernel find_kernel(Isa isa, Op op, Type type);

extern const KernelTable baseline_kernels;
#if defined(__x86_64__) && defined(__GNUC__)
#define SLUICE_HAVE_AVX2_KERNELS 1
extern const KernelTable avx2_kernels;
#endif

}  // namespace sluice
