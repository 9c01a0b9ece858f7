// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/kind.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

namespace sluice::cuda {
namespace {

// Whether the processor can read the address. True if the kernel does not tell.
bool is_readable(const void* address) {
  char byte = 0;
  const iovec here{&byte, 1}, there{const_cast<void*>(address), 1};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
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
  // A driver that is not in use yet, or no longer, has no memory.
  if (result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_DEINITIALIZED) return 0;
  if (result != CUDA_SUCCESS) {
    if (is_readable(address)) return 0;
    return is_success("cuPointerGetAttributes", result, why) ? 0 : -1;
  }
  if (found.type == CU_MEMORYTYPE_DEVICE && !found.managed) {
    *place = {found.context, found.device};
    if (found.context && !found.sync_memops) make_copies_synchronous(address, found.context);
  }
  return 0;
}

}  // namespace sluice::cuda
