// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions on a device: which kernel does what, and how it is told.
#pragma once

#include "cuda/driver.h"
#include "cuda/module.h"

namespace sluice::cuda {

// SluiceCuda::can_reduce and reduce.
bool can_reduce(int type, int operation);
bool begin_reduce(SluiceCudaStream* stream, int type, int operation, const void* const* operands,
                  size_t operand_count, void* out, size_t elements, char* why);

}  // namespace sluice::cuda
