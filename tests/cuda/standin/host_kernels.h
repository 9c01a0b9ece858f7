// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels of Sluice's CUDA module (cuda/kernels) as code of the host.
#pragma once

#include <cstddef>
#include <string>

#include "tests/cuda/standin/cuda_driver.h"

namespace standin {

struct HostKernel {
  const char* name;
  size_t bytes;  // of its only parameter
  void (*run)(const void* parameter);
};

// Null: there is no such kernel.
const HostKernel* find_host_kernel(const std::string& name);

// Runs a grid on a device, thread after thread, in the driver's thread, without its mutex.
// CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS: at the first such access the kernel
// ends, and a misuse is told.
CUresult run_host_kernel(const HostKernel& kernel, int device, const void* parameter,
                         unsigned threads);

}  // namespace standin
