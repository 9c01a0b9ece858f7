// SPDX-License-Identifier: BSD-3-Clause
//
// The types and operations of NCCL that the stand-in knows.
#pragma once

#include <cstddef>

#include "tests/cuda/standin_nccl/standin_nccl.h"

namespace standin_nccl {

size_t size_of(ncclDataType_t type);  // 0: unknown
bool is_operation(ncclRedOp_t operation);

// into[i] = into[i] operation from[i]. Small floats are rounded after each step.
void combine(ncclDataType_t type, ncclRedOp_t operation, size_t count, std::byte* into,
             const std::byte* from);

}  // namespace standin_nccl
