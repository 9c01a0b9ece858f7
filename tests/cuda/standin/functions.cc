// SPDX-License-Identifier: BSD-3-Clause
//
// Names and versions: cuGetProcAddress, and the functions of old that have the plain names. These
// take 32-bit sizes and addresses, or contexts of another kind; a program that gets one has looked
// up the wrong name.
#include <cstring>

#include "tests/cuda/standin/driver.h"

#pragma GCC visibility push(default)
extern "C" {
#define STANDIN_OLD(function)                                                             \
  CUresult function() {                                                                   \
    STANDIN_CALLED(function);                                                             \
    return standin::misuse(CUDA_ERROR_INVALID_VALUE, "%s is the old function", __func__); \
  }
STANDIN_OLD(cuCtxCreate)
STANDIN_OLD(cuCtxDestroy)
STANDIN_OLD(cuCtxPopCurrent)
STANDIN_OLD(cuCtxPushCurrent)
STANDIN_OLD(cuDeviceTotalMem)
STANDIN_OLD(cuEventDestroy)
STANDIN_OLD(cuIpcOpenMemHandle)
STANDIN_OLD(cuMemAlloc)
STANDIN_OLD(cuMemAllocHost)
STANDIN_OLD(cuMemFree)
STANDIN_OLD(cuMemGetAddressRange)
STANDIN_OLD(cuMemHostGetDevicePointer)
STANDIN_OLD(cuMemHostRegister)
STANDIN_OLD(cuMemcpy2DAsync)
STANDIN_OLD(cuMemcpyDtoD)
STANDIN_OLD(cuMemcpyDtoDAsync)
STANDIN_OLD(cuMemcpyDtoH)
STANDIN_OLD(cuMemcpyDtoHAsync)
STANDIN_OLD(cuMemcpyHtoD)
STANDIN_OLD(cuMemcpyHtoDAsync)
STANDIN_OLD(cuMemsetD8)
STANDIN_OLD(cuStreamDestroy)
}
#pragma GCC visibility pop

namespace {

struct Row {
  const char* name;
  int since;
  void* function;
};

template <typename Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

#define PLAIN(function, since) \
  { #function, since, address(&function) }
// Two rows: the old function, and the one that took its name.
#define RENEWED(function, since, now, now_since) \
  {#function, since, address(&function)}, { #function, now_since, address(&now) }

const Row table[] = {
    PLAIN(cuInit, 2000),
    PLAIN(cuDriverGetVersion, 2020),
    PLAIN(cuGetErrorName, 6000),
    PLAIN(cuGetErrorString, 6000),
    RENEWED(cuGetProcAddress, 11030, cuGetProcAddress_v2, 12000),
    PLAIN(cuDeviceGetCount, 2000),
    PLAIN(cuDeviceGet, 2000),
    PLAIN(cuDeviceGetName, 2000),
    PLAIN(cuDeviceGetAttribute, 2000),
    RENEWED(cuDeviceGetUuid, 9020, cuDeviceGetUuid_v2, 11040),
    RENEWED(cuDeviceTotalMem, 2000, cuDeviceTotalMem_v2, 3020),
    PLAIN(cuDevicePrimaryCtxRetain, 7000),
    RENEWED(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease_v2, 11000),
    PLAIN(cuThreadExchangeStreamCaptureMode, 10010),
    PLAIN(cuDevicePrimaryCtxGetState, 7000),
    RENEWED(cuCtxCreate, 2000, cuCtxCreate_v2, 3020),
    RENEWED(cuCtxDestroy, 2000, cuCtxDestroy_v2, 4000),
    PLAIN(cuCtxGetCurrent, 4000),
    PLAIN(cuCtxSetCurrent, 4000),
    RENEWED(cuCtxPushCurrent, 2000, cuCtxPushCurrent_v2, 4000),
    RENEWED(cuCtxPopCurrent, 2000, cuCtxPopCurrent_v2, 4000),
    PLAIN(cuCtxGetDevice, 2000),
    PLAIN(cuCtxGetId, 12000),
    PLAIN(cuCtxGetFlags, 7000),
    PLAIN(cuCtxSetFlags, 12010),
    PLAIN(cuCtxSynchronize, 2000),
    PLAIN(cuPointerGetAttribute, 4000),
    PLAIN(cuPointerGetAttributes, 7000),
    PLAIN(cuPointerSetAttribute, 6000),
    RENEWED(cuMemGetAddressRange, 2000, cuMemGetAddressRange_v2, 3020),
    RENEWED(cuMemAlloc, 2000, cuMemAlloc_v2, 3020),
    RENEWED(cuMemFree, 2000, cuMemFree_v2, 3020),
    PLAIN(cuMemAllocManaged, 6000),
    PLAIN(cuMemHostAlloc, 2020),
    RENEWED(cuMemAllocHost, 2000, cuMemAllocHost_v2, 3020),
    PLAIN(cuMemFreeHost, 2000),
    RENEWED(cuMemHostRegister, 4000, cuMemHostRegister_v2, 6050),
    PLAIN(cuMemHostUnregister, 4000),
    RENEWED(cuMemHostGetDevicePointer, 2020, cuMemHostGetDevicePointer_v2, 3020),
    PLAIN(cuMemAllocAsync, 11020),
    PLAIN(cuMemFreeAsync, 11020),
    PLAIN(cuMemPoolGetAccess, 11020),
    PLAIN(cuIpcGetMemHandle, 4010),
    RENEWED(cuIpcOpenMemHandle, 4010, cuIpcOpenMemHandle_v2, 11000),
    PLAIN(cuIpcCloseMemHandle, 4010),
    PLAIN(cuMemGetAllocationGranularity, 10020),
    PLAIN(cuMemAddressReserve, 10020),
    PLAIN(cuMemAddressFree, 10020),
    PLAIN(cuMemCreate, 10020),
    PLAIN(cuMemRelease, 10020),
    PLAIN(cuMemMap, 10020),
    PLAIN(cuMemUnmap, 10020),
    PLAIN(cuMemSetAccess, 10020),
    PLAIN(cuMemGetAccess, 10020),
    PLAIN(cuStreamCreate, 2000),
    PLAIN(cuStreamCreateWithPriority, 5050),
    RENEWED(cuStreamDestroy, 2000, cuStreamDestroy_v2, 4000),
    PLAIN(cuStreamSynchronize, 2000),
    PLAIN(cuStreamQuery, 2000),
    PLAIN(cuStreamWaitEvent, 3020),
    PLAIN(cuEventCreate, 2000),
    PLAIN(cuEventRecord, 2000),
    PLAIN(cuEventQuery, 2000),
    PLAIN(cuEventSynchronize, 2000),
    RENEWED(cuEventDestroy, 2000, cuEventDestroy_v2, 4000),
    PLAIN(cuMemcpy, 4000),
    PLAIN(cuMemcpyAsync, 4000),
    RENEWED(cuMemcpyHtoD, 2000, cuMemcpyHtoD_v2, 3020),
    RENEWED(cuMemcpyDtoH, 2000, cuMemcpyDtoH_v2, 3020),
    RENEWED(cuMemcpyDtoD, 2000, cuMemcpyDtoD_v2, 3020),
    RENEWED(cuMemcpyHtoDAsync, 2000, cuMemcpyHtoDAsync_v2, 3020),
    RENEWED(cuMemcpyDtoHAsync, 2000, cuMemcpyDtoHAsync_v2, 3020),
    RENEWED(cuMemcpyDtoDAsync, 2000, cuMemcpyDtoDAsync_v2, 3020),
    RENEWED(cuMemcpy2DAsync, 2000, cuMemcpy2DAsync_v2, 3020),
    PLAIN(cuModuleLoadData, 2000),
    PLAIN(cuModuleUnload, 2000),
    PLAIN(cuModuleGetFunction, 2000),
    PLAIN(cuLaunchKernel, 4000),
    RENEWED(cuMemsetD8, 2000, cuMemsetD8_v2, 3020),
};

// The newest function of this name that is not newer than `version` and the driver.
CUdriverProcAddressQueryResult look_up(const char* symbol, int version, void** function) {
  const int newest = std::min(version, standin::driver().version);
  bool known = false;
  *function = nullptr;
  for (const Row& row : table) {  // (a name's rows are in the order of their versions)
    if (std::strcmp(row.name, symbol) != 0) continue;
    known = true;
    if (row.since <= newest) *function = row.function;
  }
  if (*function) return CU_GET_PROC_ADDRESS_SUCCESS;
  return known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t) {
  STANDIN_CALLED(cuGetProcAddress);
  if (!symbol || !function) return CUDA_ERROR_INVALID_VALUE;
  return look_up(symbol, version, function) ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t,
                             CUdriverProcAddressQueryResult* status) {
  STANDIN_CALLED(cuGetProcAddress_v2);
  if (!symbol || !function) return CUDA_ERROR_INVALID_VALUE;
  const CUdriverProcAddressQueryResult found = look_up(symbol, version, function);
  if (status) *status = found;
  return found ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
