// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/contexts.h"

#include <bitset>
#include <mutex>

namespace sluice::cuda {
namespace {

constexpr size_t most_devices = 256;
constinit std::mutex keeping;
constinit std::bitset<most_devices> kept;  // devices

// The current context, if it is one of this device.
CUcontext current_of(int device) {
  CUcontext current = nullptr;
  CUdevice own = -1, wanted = -2;
  const Driver& cuda = driver();
  if (cuda.cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current) return nullptr;
  if (cuda.cuCtxGetDevice(&own) != CUDA_SUCCESS) return nullptr;
  if (cuda.cuDeviceGet(&wanted, device) != CUDA_SUCCESS) return nullptr;
  return own == wanted ? current : nullptr;
}

bool is_active(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  return driver().cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
         active != 0;
}

bool retain(int device, Context* context, char* why) {
  CUdevice handle = -1;
  const Relaxed relaxed;
  const Driver& cuda = driver();
  if (!is_success("cuDeviceGet", cuda.cuDeviceGet(&handle, device), why)) return false;
  const std::lock_guard lock(keeping);
  const auto number = static_cast<size_t>(device);
  const bool was_active = is_active(handle);
  if (!is_success("cuDevicePrimaryCtxRetain",
                  cuda.cuDevicePrimaryCtxRetain(&context->handle, handle), why)) {
    return false;
  }
  context->retained = device;
  if (was_active || number >= most_devices || kept[number]) return true;
  kept[number] = true;
  context->retained = -1;
  return true;
}

}  // namespace

bool find_context(const SluiceCudaPlace& place, Context* context, char* why) {
  context->handle = static_cast<CUcontext>(place.context);
  if (!context->handle) context->handle = current_of(place.device);
  return context->handle || retain(place.device, context, why);
}

void release(int retained) {
  CUdevice handle = -1;
  const Relaxed relaxed;
  const Driver& cuda = driver();
  if (retained < 0 || cuda.cuDeviceGet(&handle, retained) != CUDA_SUCCESS) return;
  const auto function = cuda.cuDevicePrimaryCtxRelease_v2 ? cuda.cuDevicePrimaryCtxRelease_v2
                                                          : cuda.cuDevicePrimaryCtxRelease;
  if (function) function(handle);
}

void release_kept() {
  const std::lock_guard lock(keeping);
  for (size_t device = 0; device < most_devices; ++device) {
    if (kept[device]) release(static_cast<int>(device));
  }
  kept.reset();
}

}  // namespace sluice::cuda
