// SPDX-License-Identifier: BSD-3-Clause
//
// The host kernels are compiled from one source (kernels.h) for each level of vector instructions.
// The first lookup of a kernel picks the best level that the processor has. All levels give the
// same bits; levels can be selected by name so that the unit tests can compare them.
//
// There is no AVX-512 level: on 64 KiB in cache it had 70% of AVX2's throughput out of place and
// the same in place (Zen 4). Beyond the cache, memory is the limit.
#pragma once

#include <cstdint>
#include <span>

#include "src/reduce/kernel.h"

namespace sluice {

enum class Isa : uint8_t { baseline, avx2 };

struct KernelTable {
  ReduceKernel at[op_count][type_count];
};

// The levels that were built and that this processor supports, best last; always has `baseline`.
std::span<const Isa> usable_isas();

// Like find_kernel(op, type), for a given usable level.
ReduceKernel find_kernel(Isa isa, Op op, Type type);

extern const KernelTable baseline_kernels;
#if defined(__x86_64__) && defined(__GNUC__)
#define SLUICE_HAVE_AVX2_KERNELS 1
extern const KernelTable avx2_kernels;
#endif

}  // namespace sluice
