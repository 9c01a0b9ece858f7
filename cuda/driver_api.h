// SPDX-License-Identifier: BSD-3-Clause
//
// What the module uses of the CUDA driver API, declared here so that it builds without the CUDA
// toolkit. Names are the driver's symbols, with their version ("_v2"): a symbol's interface never
// changes. Where the toolkit is at hand, tests/cuda/declarations.cc compares all of this with
// <cuda.h> at compile time.
#pragma once

#include <cstddef>
#include <cstdint>

// The oldest driver that will do: before, pointers do not tell their device.
#define SLUICE_CUDA_OLDEST_DRIVER 9020

// NAME(result and arguments). Such drivers have all of these functions.
#define SLUICE_CUDA_FUNCTIONS(F)                                                           \
  F(cuGetErrorName, CUresult(CUresult, const char**))                                      \
  F(cuGetErrorString, CUresult(CUresult, const char**))                                    \
  F(cuInit, CUresult(unsigned))                                                            \
  F(cuDriverGetVersion, CUresult(int*))                                                    \
  F(cuDeviceGetCount, CUresult(int*))                                                      \
  F(cuDeviceGet, CUresult(CUdevice*, int))                                                 \
  F(cuDeviceGetName, CUresult(char*, int, CUdevice))                                       \
  F(cuDeviceGetUuid, CUresult(CUuuid*, CUdevice))                                          \
  F(cuDeviceGetAttribute, CUresult(int*, CUdevice_attribute, CUdevice))                    \
  F(cuDevicePrimaryCtxGetState, CUresult(CUdevice, unsigned*, int*))                       \
  F(cuDevicePrimaryCtxRetain, CUresult(CUcontext*, CUdevice))                              \
  F(cuCtxGetFlags, CUresult(unsigned*))                                                    \
  F(cuCtxPushCurrent_v2, CUresult(CUcontext))                                              \
  F(cuCtxPopCurrent_v2, CUresult(CUcontext*))                                              \
  F(cuPointerGetAttributes, CUresult(unsigned, CUpointer_attribute*, void**, CUdeviceptr)) \
  F(cuMemGetAddressRange_v2, CUresult(CUdeviceptr*, size_t*, CUdeviceptr))                 \
  F(cuPointerSetAttribute, CUresult(const void*, CUpointer_attribute, CUdeviceptr))        \
  F(cuMemAlloc_v2, CUresult(CUdeviceptr*, size_t))                                         \
  F(cuMemFree_v2, CUresult(CUdeviceptr))                                                   \
  F(cuIpcGetMemHandle, CUresult(CUipcMemHandle*, CUdeviceptr))                             \
  F(cuIpcCloseMemHandle, CUresult(CUdeviceptr))                                            \
  F(cuMemHostUnregister, CUresult(void*))                                                  \
  F(cuMemHostRegister_v2, CUresult(void*, size_t, unsigned))                               \
  F(cuStreamCreate, CUresult(CUstream*, unsigned))                                         \
  F(cuStreamDestroy_v2, CUresult(CUstream))                                                \
  F(cuStreamQuery, CUresult(CUstream))                                                     \
  F(cuEventCreate, CUresult(CUevent*, unsigned))                                           \
  F(cuEventDestroy_v2, CUresult(CUevent))                                                  \
  F(cuEventRecord, CUresult(CUevent, CUstream))                                            \
  F(cuEventQuery, CUresult(CUevent))                                                       \
  F(cuMemcpyHtoDAsync_v2, CUresult(CUdeviceptr, const void*, size_t, CUstream))            \
  F(cuMemcpyDtoHAsync_v2, CUresult(void*, CUdeviceptr, size_t, CUstream))                  \
  F(cuMemcpyDtoDAsync_v2, CUresult(CUdeviceptr, CUdeviceptr, size_t, CUstream))            \
  F(cuMemcpy2DAsync_v2, CUresult(const CUDA_MEMCPY2D*, CUstream))                          \
  F(cuMemcpyAsync, CUresult(CUdeviceptr, CUdeviceptr, size_t, CUstream))                   \
  F(cuModuleLoadData, CUresult(CUmodule*, const void*))                                    \
  F(cuModuleGetFunction, CUresult(CUfunction*, CUmodule, const char*))                     \
  F(cuModuleUnload, CUresult(CUmodule))                                                    \
  F(cuLaunchKernel, CUresult(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, \
                             unsigned, unsigned, CUstream, void**, void**))

// Functions that older drivers lack: these are null then.
#define SLUICE_CUDA_LATER_FUNCTIONS(F)                                                           \
  F(cuThreadExchangeStreamCaptureMode, CUresult(CUstreamCaptureMode*))                /* 10.1 */ \
  F(cuDevicePrimaryCtxRelease_v2, CUresult(CUdevice))                                 /* 11.0 */ \
  F(cuMemGetAccess, CUresult(unsigned long long*, const CUmemLocation*, CUdeviceptr)) /* 10.2 */ \
  F(cuMemPoolGetAccess, CUresult(CUmemAccess_flags*, CUmemoryPool, CUmemLocation*))   /* 11.2 */ \
  F(cuIpcOpenMemHandle_v2, CUresult(CUdeviceptr*, CUipcMemHandle, unsigned))          /* 11.0 */ \
  F(cuCtxSetFlags, CUresult(unsigned))                                                /* 12.1 */

// Functions that later ones replace: not needed, and null where a driver has given them up.
#define SLUICE_CUDA_EARLIER_FUNCTIONS(F) F(cuDevicePrimaryCtxRelease, CUresult(CUdevice))

// Constants: NAME(type, value).
#define SLUICE_CUDA_CONSTANTS(C)                                           \
  C(CUDA_SUCCESS, CUresult, 0)                                             \
  C(CUDA_ERROR_INVALID_VALUE, CUresult, 1)                                 \
  C(CUDA_ERROR_NOT_INITIALIZED, CUresult, 3)                               \
  C(CUDA_ERROR_DEINITIALIZED, CUresult, 4)                                 \
  C(CUDA_ERROR_INVALID_IMAGE, CUresult, 200)                               \
  C(CUDA_ERROR_NO_BINARY_FOR_GPU, CUresult, 209)                           \
  C(CUDA_ERROR_INVALID_PTX, CUresult, 218)                                 \
  C(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CUresult, 221)                      \
  C(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUresult, 222)                     \
  C(CUDA_ERROR_JIT_COMPILATION_DISABLED, CUresult, 223)                    \
  C(CUDA_ERROR_NOT_FOUND, CUresult, 500)                                   \
  C(CUDA_ERROR_NOT_READY, CUresult, 600)                                   \
  C(CUDA_ERROR_NOT_SUPPORTED, CUresult, 801)                               \
  C(CU_POINTER_ATTRIBUTE_CONTEXT, CUpointer_attribute, 1)                  \
  C(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CUpointer_attribute, 2)              \
  C(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CUpointer_attribute, 6)              \
  C(CU_POINTER_ATTRIBUTE_BUFFER_ID, CUpointer_attribute, 7)                \
  C(CU_POINTER_ATTRIBUTE_IS_MANAGED, CUpointer_attribute, 8)               \
  C(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CUpointer_attribute, 9)           \
  C(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, CUpointer_attribute, 17)          \
  C(CU_MEMORYTYPE_HOST, CUmemorytype, 1)                                   \
  C(CU_MEMORYTYPE_DEVICE, CUmemorytype, 2)                                 \
  C(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, CUdevice_attribute, 89) \
  C(CU_MEM_LOCATION_TYPE_DEVICE, CUmemLocationType, 1)                     \
  C(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CUmemAccess_flags, 3)              \
  C(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, CUipcMem_flags, 1)                 \
  C(CU_CTX_SYNC_MEMOPS, CUctx_flags, 0x80)                                 \
  C(CU_STREAM_DEFAULT, CUstream_flags, 0)                                  \
  C(CU_STREAM_NON_BLOCKING, CUstream_flags, 1)                             \
  C(CU_EVENT_DISABLE_TIMING, CUevent_flags, 2)                             \
  C(CU_STREAM_CAPTURE_MODE_RELAXED, CUstreamCaptureMode, 2)

namespace sluice::cuda {

// The driver's enumerations are ints in its binary interface.
using CUresult = int;
using CUpointer_attribute = unsigned;
using CUmemorytype = unsigned;
using CUdevice_attribute = unsigned;
using CUmemLocationType = unsigned;
using CUmemAccess_flags = unsigned;
using CUctx_flags = unsigned;
using CUipcMem_flags = unsigned;
using CUstream_flags = unsigned;
using CUevent_flags = unsigned;
using CUstreamCaptureMode = unsigned;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUarray = struct CUarray_st*;
using CUmodule = struct CUmod_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUfunction = struct CUfunc_st*;

struct CUuuid {
  char bytes[16];
};

struct CUipcMemHandle {
  char reserved[64];
};

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};

struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
};

#define SLUICE_CONSTANT(name, type, value) inline constexpr type name = value;
SLUICE_CUDA_CONSTANTS(SLUICE_CONSTANT)
#undef SLUICE_CONSTANT
inline constexpr unsigned host_register_portable = 1;  // CU_MEMHOSTREGISTER_PORTABLE, a macro
inline constexpr size_t most_pitch = 0x7fffffff;       // of 2D copies

}  // namespace sluice::cuda
