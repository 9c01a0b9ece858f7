// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/kind.h"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <iterator>

#include "src/base/system_call.h"

namespace sluice::cuda {
namespace {

enum class Answer : uint8_t { unknown, no, yes };

// Whether the processor can read the address. The kernel does not tell if a filter of system calls
// forbids it.
Answer is_readable(const void* address) {
  char byte = 0;
  const iovec here{&byte, 1}, there{const_cast<void*>(address), 1};
  const ssize_t read =
      system_call([&] { return process_vm_readv(getpid(), &here, 1, &there, 1, 0); });
  if (read == 1) return Answer::yes;
  return read == -EFAULT ? Answer::no : Answer::unknown;
}

// A synchronous copy from pageable memory may return while its last bytes are still on their way,
// and Sluice's streams do not wait for them. From now on those to this allocation return when they
// are done, and this waits for earlier ones. (Memory without a context can't have this.)
void make_copies_synchronous(const void* address, CUcontext context) {
  char why[sluice_cuda_why];
  const unsigned on = 1;
  const Current current(context, why);
  if (!current) return;
  (void)driver().cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address_of(address));
}

// Whether the processor may touch managed memory while the device works. Asked once a device.
bool is_concurrent(int device) {
  static constinit std::atomic<Answer> known[256]{};
  if (device < 0 || device >= static_cast<int>(std::size(known))) return true;
  Answer answer = known[device].load(std::memory_order_relaxed);
  if (answer == Answer::unknown) {
    CUdevice handle = -1;
    int value = 1;
    const bool told =
        driver().cuDeviceGet(&handle, device) == CUDA_SUCCESS &&
        driver().cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
                                      handle) == CUDA_SUCCESS;
    answer = told && value == 0 ? Answer::no : Answer::yes;
    known[device].store(answer, std::memory_order_relaxed);
  }
  return answer == Answer::yes;
}

// The pool that memory is of. Null if none, or if the driver does not tell (before CUDA 11.3).
CUmemoryPool pool_of(const void* address) {
  CUmemoryPool pool = nullptr;
  CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
  void* value = &pool;
  const CUresult result = driver().cuPointerGetAttributes(1, &which, &value, address_of(address));
  return result == CUDA_SUCCESS ? pool : nullptr;
}

// Whether a device may use memory without a context. (Asked about a pool's memory, or the
// processor's access, cuMemGetAccess answers, but not with the truth.)
Answer has_access(const void* address, CUmemoryPool pool, int device) {
  const Driver& cuda = driver();
  CUmemLocation place{CU_MEM_LOCATION_TYPE_DEVICE, device};
  unsigned long long flags = 0;
  CUmemAccess_flags pools = 0;
  if (pool ? !cuda.cuMemPoolGetAccess : !cuda.cuMemGetAccess) return Answer::unknown;
  const CUresult result = pool ? cuda.cuMemPoolGetAccess(&pools, pool, &place)
                               : cuda.cuMemGetAccess(&flags, &place, address_of(address));
  if (result != CUDA_SUCCESS) return Answer::unknown;
  return (pool ? pools : flags) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? Answer::yes : Answer::no;
}

// A device that may use memory without a context: its own, if that may, or another one. -1: none.
int find_user(const void* address, int own) {
  int count = 0;
  const CUmemoryPool pool = pool_of(address);
  if (own >= 0 && has_access(address, pool, own) != Answer::no) return own;
  if (driver().cuDeviceGetCount(&count) != CUDA_SUCCESS) return -1;
  for (int device = 0; device < count; ++device) {
    if (has_access(address, pool, device) == Answer::yes) return device;
  }
  return -1;
}

// Memory that belongs to no context: of a pool, or virtual memory of a device or of the host. (The
// host's is the processor's only if the program has said so, and no device's either before.)
int find_without_context(const void* address, const Attributes& found, SluiceCudaPlace* place,
                         char* why) {
  const bool is_hosts = found.type == CU_MEMORYTYPE_HOST || found.device < 0;
  const Answer readable = is_hosts ? is_readable(address) : Answer::no;
  if (readable == Answer::yes) return 0;
  const int user = find_user(address, is_hosts ? -1 : found.device);
  if (user < 0) {
    if (readable == Answer::unknown) return 0;
    std::snprintf(why, sluice_cuda_why, "neither a device nor the processor may read and write it");
    return -1;
  }
  *place = {nullptr, user};
  return 0;
}

// An address of which the driver tells nothing.
int find_unknown(const void* address, CUresult result, char* why) {
  // A driver that is not in use yet, or no longer, has no memory.
  if (result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_DEINITIALIZED) return 0;
  const Answer readable = is_readable(address);
  const bool is_foreign = result == CUDA_ERROR_INVALID_VALUE && readable != Answer::no;
  if (readable == Answer::yes || is_foreign) return 0;
  return is_success("cuPointerGetAttributes", result, why) ? 0 : -1;
}

}  // namespace

CUresult ask(const void* address, Attributes* attributes) {
  *attributes = {};
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_SYNC_MEMOPS};
  void* values[] = {&attributes->type, &attributes->managed, &attributes->context,
                    &attributes->device, &attributes->sync_memops};
  return driver().cuPointerGetAttributes(std::size(which), which, values, address_of(address));
}

int find(const void* address, SluiceCudaPlace* place, char* why) {
  *place = {nullptr, -1};
  Attributes found;
  const CUresult result = ask(address, &found);
  if (result != CUDA_SUCCESS) return find_unknown(address, result, why);
  if (found.type == 0 || (found.managed && is_concurrent(found.device))) return 0;
  if (!found.context) return find_without_context(address, found, place, why);
  if (found.type != CU_MEMORYTYPE_DEVICE) return 0;
  *place = {found.context, found.device};
  if (!found.sync_memops) make_copies_synchronous(address, found.context);
  return 0;
}

}  // namespace sluice::cuda
