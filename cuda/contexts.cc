// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/contexts.h"

#include <cstdio>
#include <cstring>
#include <mutex>

namespace sluice::cuda {
namespace {

constexpr int most_devices = 256;
constinit std::mutex mutex;
constinit unsigned held[most_devices] = {};  // times that Sluice has retained each device's context

bool is_active(CUdevice handle, const Driver& cuda) {
  unsigned flags = 0;
  int active = 0;
  return cuda.cuDevicePrimaryCtxGetState(handle, &flags, &active) == CUDA_SUCCESS && active != 0;
}

void release(CUdevice handle) {
  const Driver& cuda = driver();
  const auto function = cuda.cuDevicePrimaryCtxRelease_v2 ? cuda.cuDevicePrimaryCtxRelease_v2
                                                          : cuda.cuDevicePrimaryCtxRelease;
  if (function) function(handle);
}

struct Allocation {
  unsigned long long id = 0;
  CUcontext context = nullptr;
};
CUresult find_allocation(CUdeviceptr address, Allocation* found) {
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_CONTEXT};
  void* values[] = {&found->id, &found->context};
  return driver().cuPointerGetAttributes(2, which, values, address);
}

bool find_handle(int device, CUdevice* handle, char* why) {
  if (device >= 0 && device < most_devices) {
    return is_success("cuDeviceGet", driver().cuDeviceGet(handle, device), why);
  }
  std::snprintf(why, sluice_cuda_why, "there is no device %d", device);
  return false;
}

}  // namespace

CUcontext find_context(const SluiceCudaPlace& place, char* why) {
  const auto own = static_cast<CUcontext>(place.context);
  return own ? own : primary_context(place.device, why);
}

// (Only to retain a context tells whether its handle is still the one of before. A context that is
// active and held is then retained once too often; one that was reset is not.)
CUcontext primary_context(int device, char* why) {
  CUdevice handle = -1;
  CUcontext context = nullptr;
  const Relaxed relaxed;
  const Driver& cuda = driver();
  if (!find_handle(device, &handle, why)) return nullptr;
  const std::lock_guard lock(mutex);
  const bool was_held = held[device] > 0 && is_active(handle, cuda);
  const CUresult result = cuda.cuDevicePrimaryCtxRetain(&context, handle);
  if (!is_success("cuDevicePrimaryCtxRetain", result, why)) return nullptr;
  was_held ? release(handle) : void(++held[device]);
  return context;
}

bool is_active(int device) {
  CUdevice handle = -1;
  const Driver& cuda = driver();
  return cuda.cuDeviceGet(&handle, device) == CUDA_SUCCESS && is_active(handle, cuda);
}

void release_primaries() {
  CUdevice handle = -1;
  const Relaxed relaxed;
  const std::lock_guard lock(mutex);
  for (int device = 0; device < most_devices; ++device) {
    if (held[device] == 0 || driver().cuDeviceGet(&handle, device) != CUDA_SUCCESS) continue;
    for (; held[device] > 0; --held[device]) release(handle);
  }
}

// (To ask for the primary context makes one, so only an active one is asked for.)
bool is_in_primary(const SluiceCudaPlace& place, char* why) {
  if (!place.context) return true;
  const CUcontext primary = is_active(place.device) ? primary_context(place.device, why) : nullptr;
  if (primary == place.context) return true;
  std::snprintf(why, sluice_cuda_why,
                "memory of device %d is in a context that is not the device's primary one",
                place.device);
  return false;
}

bool find_uuid_in_primary(const SluiceCudaPlace& place, unsigned char* uuid, char* why) {
  const Relaxed relaxed;
  CUdevice device = -1;
  CUuuid found{};
  if (place.device < 0) {
    std::snprintf(why, sluice_cuda_why, "memory of the host is on no device");
    return false;
  }
  const bool is_found =
      is_in_primary(place, why) &&
      is_success("cuDeviceGet", driver().cuDeviceGet(&device, place.device), why) &&
      is_success("cuDeviceGetUuid", driver().cuDeviceGetUuid(&found, device), why);
  if (is_found) std::memcpy(uuid, &found, sizeof found);
  return is_found;
}

CUcontext retain_primary(int device, char* why) {
  CUdevice handle = -1;
  CUcontext context = nullptr;
  const Relaxed relaxed;
  if (!find_handle(device, &handle, why)) return nullptr;
  const CUresult result = driver().cuDevicePrimaryCtxRetain(&context, handle);
  return is_success("cuDevicePrimaryCtxRetain", result, why) ? context : nullptr;
}

void release_primary(int device) {
  CUdevice handle = -1;
  const Relaxed relaxed;
  if (driver().cuDeviceGet(&handle, device) == CUDA_SUCCESS) release(handle);
}

Canary make_canary() {
  CUdeviceptr address = 0;
  if (driver().cuMemAlloc_v2(&address, 1) != CUDA_SUCCESS) return {};
  return make_canary_of(address);
}

Canary make_canary_of(CUdeviceptr memory) {
  Allocation found;
  return {memory, find_allocation(memory, &found) == CUDA_SUCCESS ? found.id : 0};
}

bool is_alive(const Canary& canary, CUcontext context) {
  Allocation found;
  return find_allocation(canary.address, &found) == CUDA_SUCCESS && found.id != 0 &&
         found.id == canary.id && found.context == context;
}

bool is_gone(const Canary& canary, CUcontext context) {
  Allocation found;
  const CUresult result = find_allocation(canary.address, &found);
  const bool is_same = found.id == canary.id && found.context == context;
  return result == CUDA_ERROR_DEINITIALIZED || (result == CUDA_SUCCESS && !is_same);
}

}  // namespace sluice::cuda
