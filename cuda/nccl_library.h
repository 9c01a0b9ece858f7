// SPDX-License-Identifier: BSD-3-Clause
//
// NCCL's library, opened at run time and never closed.
#pragma once

#include "cuda/nccl_api.h"
#include "cuda/nccl_module.h"

namespace sluice::cuda {

// SluiceNccl::open. It also refuses in a process that was forked after the library was opened.
bool open_nccl(SluiceNcclLibrary* library, char* why);

// The library's functions. Valid once open_nccl has succeeded.
const NcclFunctions& nccl();

// Whether NCCL has accepted a call: ncclSuccess or ncclInProgress. If not, `why` says:
// "ncclAllReduce: invalid usage (NCCL error 5)".
bool is_accepted(const char* function, ncclResult_t result, char* why);

}  // namespace sluice::cuda
