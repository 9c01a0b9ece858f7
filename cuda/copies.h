// SPDX-License-Identifier: BSD-3-Clause
//
// Copies between memory of a device and host memory.
#pragma once

#include "cuda/driver.h"
#include "cuda/module.h"

namespace sluice::cuda {

// SluiceCuda::copy. Short runs go through scratch, packed by a kernel (packing.h), where there are
// enough of them. Else runs that lie in one allocation are one two-dimensional copy, if their
// distance allows that.
bool begin_copies(SluiceCudaStream* stream, const SluiceCudaRuns* runs, size_t count,
                  bool to_device, char* why);

}  // namespace sluice::cuda
