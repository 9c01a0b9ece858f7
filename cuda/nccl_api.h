// SPDX-License-Identifier: BSD-3-Clause
//
// Declares the functions of NCCL that the module calls. So the module builds without NCCL, and
// opens the library at run time. Names and values are those of <nccl.h>. Where that header is at
// hand, tests/cuda/nccl_declarations.cc compares all of this with it at compile time.
#pragma once

#include <climits>
#include <cstddef>

#include "cuda/driver_api.h"

// The oldest library that will do: before, abort is unsafe while other threads are in a call.
#define SLUICE_NCCL_OLDEST_VERSION 21900

// NAME(result and arguments). Every such library has all of these functions.
#define SLUICE_NCCL_FUNCTIONS(F)                                                                   \
  F(ncclGetVersion, ncclResult_t(int*))                                                            \
  F(ncclGetUniqueId, ncclResult_t(ncclUniqueId*))                                                  \
  F(ncclCommInitRankConfig, ncclResult_t(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*))      \
  F(ncclCommGetAsyncError, ncclResult_t(ncclComm_t, ncclResult_t*))                                \
  F(ncclCommAbort, ncclResult_t(ncclComm_t))                                                       \
  F(ncclCommFinalize, ncclResult_t(ncclComm_t))                                                    \
  F(ncclCommDestroy, ncclResult_t(ncclComm_t))                                                     \
  F(ncclGetErrorString, const char*(ncclResult_t))                                                 \
  F(ncclAllReduce,                                                                                 \
    ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, CUstream))   \
  F(ncclReduce, ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int,         \
                             ncclComm_t, CUstream))                                                \
  F(ncclBroadcast,                                                                                 \
    ncclResult_t(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, CUstream))           \
  F(ncclAllGather, ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclComm_t, CUstream)) \
  F(ncclReduceScatter,                                                                             \
    ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, CUstream))   \
  F(ncclSend, ncclResult_t(const void*, size_t, ncclDataType_t, int, ncclComm_t, CUstream))        \
  F(ncclRecv, ncclResult_t(void*, size_t, ncclDataType_t, int, ncclComm_t, CUstream))              \
  F(ncclGroupStart, ncclResult_t())                                                                \
  F(ncclGroupEnd, ncclResult_t())

// Constants: NAME(type, value).
#define SLUICE_NCCL_CONSTANTS(C)             \
  C(ncclSuccess, ncclResult_t, 0)            \
  C(ncclUnhandledCudaError, ncclResult_t, 1) \
  C(ncclSystemError, ncclResult_t, 2)        \
  C(ncclInternalError, ncclResult_t, 3)      \
  C(ncclInvalidArgument, ncclResult_t, 4)    \
  C(ncclInvalidUsage, ncclResult_t, 5)       \
  C(ncclRemoteError, ncclResult_t, 6)        \
  C(ncclInProgress, ncclResult_t, 7)         \
  C(ncclSum, ncclRedOp_t, 0)                 \
  C(ncclProd, ncclRedOp_t, 1)                \
  C(ncclMax, ncclRedOp_t, 2)                 \
  C(ncclMin, ncclRedOp_t, 3)                 \
  C(ncclInt8, ncclDataType_t, 0)             \
  C(ncclUint8, ncclDataType_t, 1)            \
  C(ncclInt32, ncclDataType_t, 2)            \
  C(ncclUint32, ncclDataType_t, 3)           \
  C(ncclInt64, ncclDataType_t, 4)            \
  C(ncclUint64, ncclDataType_t, 5)           \
  C(ncclFloat16, ncclDataType_t, 6)          \
  C(ncclFloat32, ncclDataType_t, 7)          \
  C(ncclFloat64, ncclDataType_t, 8)          \
  C(ncclBfloat16, ncclDataType_t, 9)

namespace sluice::cuda {

// NCCL's enumerations are unsigned in its binary interface.
using ncclResult_t = unsigned;
using ncclRedOp_t = unsigned;
using ncclDataType_t = unsigned;
using ncclComm_t = struct ncclComm*;

struct ncclUniqueId {
  char internal[128];
};

// As of NCCL 2.18, and its version says so: later libraries take their own defaults for the members
// that they have added behind.
struct ncclConfig_t {
  size_t size = sizeof(ncclConfig_t);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = INT_MIN;  // INT_MIN: not set
  int cgaClusterSize = INT_MIN;
  int minCTAs = INT_MIN;
  int maxCTAs = INT_MIN;
  const char* netName = nullptr;
  int splitShare = INT_MIN;
};

#define SLUICE_CONSTANT(name, type, value) inline constexpr type name = value;
SLUICE_NCCL_CONSTANTS(SLUICE_CONSTANT)
#undef SLUICE_CONSTANT

// Pointers to the library's functions, by their names; whoever opens the library fills it.
struct NcclFunctions {
#define SLUICE_MEMBER(name, ...)   \
  using name##_type = __VA_ARGS__; \
  name##_type* name = nullptr;
  SLUICE_NCCL_FUNCTIONS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
};

}  // namespace sluice::cuda
