// SPDX-License-Identifier: BSD-3-Clause
//
// libsluice-cuda.so: the table of functions of CUDA IPC (ipc_module.h).
#include "cuda/ipc_module.h"

#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>

#include "cuda/contexts.h"
#include "cuda/driver.h"

struct SluiceIpcSlab {
  int device = -1;
  sluice::cuda::CUcontext context = nullptr;  // retained
  sluice::cuda::CUdeviceptr memory = 0;
  sluice::cuda::Canary canary;  // the memory itself
  const pid_t process = getpid();
};

namespace sluice::cuda {
namespace {

// The driver shares memory in blocks of 2 MiB: with a part of one, its neighbours would be open to
// the other process, too.
constexpr size_t block = size_t{2} << 20;

void* to_pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

int find_device(const SluiceCudaPlace* place, unsigned char uuid[sluice_ipc_uuid], char* why) {
  return find_uuid_in_primary(*place, uuid, why) ? 0 : -1;
}

int is_alive(const SluiceIpcSlab* slab) {
  const bool is_own = slab->process == getpid();
  return is_own && slab->memory != 0 && is_alive(slab->canary, slab->context) ? 1 : 0;
}

void* memory(const SluiceIpcSlab* slab) { return to_pointer(slab->memory); }

void destroy(SluiceIpcSlab* slab) {
  char why[sluice_cuda_why];
  if (is_alive(slab)) {
    const Current current(slab->context, why);
    if (current) driver().cuMemFree_v2(slab->memory);
  }
  if (slab->context && slab->process == getpid()) release_primary(slab->device);
  delete slab;
}

// In the slab's context.
bool allocate(SluiceIpcSlab* slab, size_t bytes, char* handle, char* why) {
  const Current current(slab->context, why);
  CUipcMemHandle made;
  static_assert(sizeof made == sluice_ipc_handle);
  if (!current) return false;
  const Driver& cuda = driver();
  const size_t whole = (bytes + block - 1) / block * block;
  if (!is_success("cuMemAlloc", cuda.cuMemAlloc_v2(&slab->memory, whole), why)) return false;
  slab->canary = make_canary_of(slab->memory);
  if (slab->canary.id == 0) {
    std::snprintf(why, sluice_cuda_why, "the driver does not know memory of its own");
    cuda.cuMemFree_v2(slab->memory);
    return false;
  }
  const CUresult result = cuda.cuIpcGetMemHandle(&made, slab->memory);
  if (!is_success("cuIpcGetMemHandle", result, why)) return false;
  std::memcpy(handle, &made, sizeof made);
  return true;
}

SluiceIpcSlab* create(int device, size_t bytes, char handle[sluice_ipc_handle], char* why) {
  if (!driver().cuIpcOpenMemHandle_v2) {
    std::snprintf(why, sluice_cuda_why,
                  "the CUDA driver is too old for IPC: it has no "
                  "cuIpcOpenMemHandle_v2");
    return nullptr;
  }
  auto* const slab = new (std::nothrow) SluiceIpcSlab;
  if (!slab) {
    std::snprintf(why, sluice_cuda_why, "no memory for a slab");
    return nullptr;
  }
  slab->device = device;
  slab->context = retain_primary(device, why);
  if (slab->context && allocate(slab, bytes, handle, why)) return slab;
  destroy(slab);
  return nullptr;
}

void* open(SluiceIpcSlab* slab, const char handle[sluice_ipc_handle], char* why) {
  CUdeviceptr opened = 0;
  CUipcMemHandle given;
  if (!is_alive(slab)) {
    std::snprintf(why, sluice_cuda_why, "the program has reset the device");
    return nullptr;
  }
  const Current current(slab->context, why);
  if (!current) return nullptr;
  std::memcpy(&given, handle, sizeof given);
  const CUresult result =
      driver().cuIpcOpenMemHandle_v2(&opened, given, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  return is_success("cuIpcOpenMemHandle", result, why) ? to_pointer(opened) : nullptr;
}

void close(SluiceIpcSlab* slab, void* opened) {
  char why[sluice_cuda_why];
  if (!is_alive(slab)) return;
  const Current current(slab->context, why);
  if (current) driver().cuIpcCloseMemHandle(address_of(opened));
}

constexpr SluiceIpc table{
    SLUICE_IPC_VERSION, find_device, create, is_alive, memory, open, close, destroy};

}  // namespace
}  // namespace sluice::cuda

extern "C" __attribute__((visibility("default"))) const SluiceIpc* sluice_ipc() {
  return &sluice::cuda::table;
}
