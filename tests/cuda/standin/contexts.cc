// SPDX-License-Identifier: BSD-3-Clause
//
// Initialization, errors, devices and contexts.
#include <cstdio>
#include <cstring>

#include "tests/cuda/standin/driver.h"

using standin::Context;
using standin::current;
using standin::misuse;
using standin::pop_current;
using standin::push_current;

namespace {

struct Text {
  CUresult error;
  const char *name, *text;
};

constexpr Text texts[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_MAP_FAILED, "CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed"},
    {CUDA_ERROR_ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED", "resource already mapped"},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const Text* find(CUresult error) {
  for (const Text& row : texts) {
    if (row.error == error) return &row;
  }
  return nullptr;
}

bool is_device(CUdevice device) { return device >= 0 && device < standin::driver().devices; }

CUresult uuid_of(CUuuid* uuid, CUdevice device) {
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::memset(uuid, 0x5d, sizeof *uuid);
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

CUresult no_context(const char* function) {
  return misuse(CUDA_ERROR_INVALID_CONTEXT, "%s: no such context", function);
}

}  // namespace

CUresult cuInit(unsigned flags) {
  STANDIN_CALLED(cuInit);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  standin::Driver& driver = standin::driver();
  const standin::Lock lock(driver.mutex);
  if (driver.init_result) return driver.init_result;
  if (driver.devices == 0) return CUDA_ERROR_NO_DEVICE;
  driver.initialized = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  STANDIN_CALLED(cuDriverGetVersion);
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = standin::driver().version;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  STANDIN_CALLED(cuGetErrorName);
  const Text* const found = find(error);
  *text = found ? found->name : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  STANDIN_CALLED(cuGetErrorString);
  const Text* const found = find(error);
  *text = found ? found->text : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int* count) {
  STANDIN_ENTER(cuDeviceGetCount);
  *count = driver.devices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  STANDIN_ENTER(cuDeviceGet);
  if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  STANDIN_ENTER(cuDeviceGetName);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(length), "Stand-in %d", device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  STANDIN_ENTER(cuDeviceGetAttribute);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      *value = 0x7fffffff;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      *value = 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      *value = driver.is_concurrent ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 8;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return misuse(CUDA_ERROR_INVALID_VALUE, "cuDeviceGetAttribute: %u is not known here",
                    static_cast<unsigned>(attribute));
  }
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  STANDIN_ENTER(cuDeviceGetUuid);
  return uuid_of(uuid, device);
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  STANDIN_ENTER(cuDeviceGetUuid_v2);
  return uuid_of(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  STANDIN_ENTER(cuDeviceTotalMem_v2);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = size_t{16} << 30;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  STANDIN_ENTER(cuDevicePrimaryCtxRetain);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (driver.strikes("retain")) return CUDA_ERROR_OUT_OF_MEMORY;
  Context*& primary = driver.primaries[static_cast<size_t>(device)];
  if (!primary) primary = driver.make_context(device, true);
  if (!primary->alive) driver.revive(primary);
  ++primary->retained;
  ++standin::counter("retained");
  *context = reinterpret_cast<CUcontext>(primary);
  return CUDA_SUCCESS;
}

namespace {

CUresult release_primary(CUdevice device) {
  STANDIN_ENTER(cuDevicePrimaryCtxRelease_v2);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context*& primary = driver.primaries[static_cast<size_t>(device)];
  if (!primary) return no_context("cuDevicePrimaryCtxRelease_v2: released more than retained");
  --standin::counter("retained");
  if (--primary->retained > 0) return CUDA_SUCCESS;
  Context* const gone = primary;
  primary = nullptr;
  if (gone->alive) driver.destroy(gone, &lock);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return release_primary(device); }
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return release_primary(device); }

// What was made in the context is gone. Its handle stays current to threads, but is dead until the
// context is retained again. Those that have retained it still have.
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  STANDIN_ENTER(cuDevicePrimaryCtxReset_v2);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context* const primary = driver.primaries[static_cast<size_t>(device)];
  if (primary && primary->alive) driver.destroy(primary, &lock);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  STANDIN_ENTER(cuDevicePrimaryCtxGetState);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Context* const primary = driver.primaries[static_cast<size_t>(device)];
  *active = primary && primary->alive ? 1 : 0;
  *flags = *active ? primary->flags : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  STANDIN_ENTER(cuCtxCreate_v2);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context* const made = driver.make_context(device, false);
  made->flags = flags;
  push_current(made);
  *context = reinterpret_cast<CUcontext>(made);
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
  STANDIN_ENTER(cuCtxDestroy_v2);
  Context* const context = driver.context_of(handle);
  if (!context || context->primary) return no_context("cuCtxDestroy_v2");
  if (current() == context) pop_current();
  driver.destroy(context, &lock);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  STANDIN_ENTER(cuCtxGetCurrent);
  *context = reinterpret_cast<CUcontext>(current());
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  STANDIN_ENTER(cuCtxSetCurrent);
  Context* const context = driver.context_of(handle);
  if (handle && !context) return no_context("cuCtxSetCurrent");
  if (current()) pop_current();
  if (context) push_current(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  STANDIN_ENTER(cuCtxPushCurrent_v2);
  Context* const context = driver.context_of(handle);
  if (!context) return no_context("cuCtxPushCurrent_v2");
  push_current(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  STANDIN_ENTER(cuCtxPopCurrent_v2);
  if (!current()) return no_context("cuCtxPopCurrent_v2");
  if (context) *context = reinterpret_cast<CUcontext>(current());
  pop_current();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  STANDIN_ENTER(cuCtxGetDevice);
  if (!current()) return CUDA_ERROR_INVALID_CONTEXT;
  *device = current()->device;
  return CUDA_SUCCESS;
}

// No two contexts have one, also where a later one has an earlier one's address.
CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  STANDIN_ENTER(cuCtxGetId);
  const Context* const context = handle ? driver.context_of(handle) : current();
  if (!context) return handle ? no_context("cuCtxGetId") : CUDA_ERROR_INVALID_CONTEXT;
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned* flags) {
  STANDIN_ENTER_CONTEXT(cuCtxGetFlags);
  *flags = current()->flags;
  return CUDA_SUCCESS;
}

// Waits for the threads that are in a call which enqueues, as the driver may.
CUresult cuCtxSetFlags(unsigned flags) {
  STANDIN_ENTER_CONTEXT(cuCtxSetFlags);
  Context* const context = current();
  driver.changed.wait(lock, [&] { return context->launching == 0; });
  context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  STANDIN_ENTER_CONTEXT(cuCtxSynchronize);
  Context* const context = current();
  driver.wait(context, &lock);
  return context->broken;
}

CUcontext standin_green_context(CUdevice device) {
  standin::Driver& driver = standin::driver();
  const standin::Lock lock(driver.mutex);
  Context* const made = driver.make_context(device, false);
  made->green = true;
  return reinterpret_cast<CUcontext>(made);
}
