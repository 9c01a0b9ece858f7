// SPDX-License-Identifier: BSD-3-Clause
//
// Allocations, and what pointers say about themselves.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/cuda/standin/driver.h"

namespace standin {

constexpr size_t most_bytes = size_t{16} << 30;

std::shared_ptr<Physical> Physical::make(size_t bytes, int device) {
  std::shared_ptr<Physical> made(new Physical(whole_pages(bytes), device));
  made->file = memfd_create("standin", MFD_CLOEXEC);
  if (made->file < 0 || ftruncate(made->file, static_cast<off_t>(made->bytes)) != 0) return nullptr;
  void* const reach = mmap(nullptr, made->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made->file, 0);
  if (reach == MAP_FAILED) return nullptr;
  made->reach = static_cast<std::byte*>(reach);
  return made;
}

Physical::~Physical() {
  if (exported) munmap(exported, page);
  if (reach) munmap(reach, bytes);
  if (file >= 0) close(file);
}

Allocation::~Allocation() {
  if (base == 0 || kind == Kind::registered) return;
  void* const address = reinterpret_cast<void*>(base);
  if (kind == Kind::imported) leave_exported(*this);
  if (kind == Kind::mapped) {  // the program's reservation stays
    mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  } else {
    munmap(address, whole_pages(bytes));
  }
}

bool Allocation::serves(int of_device) const {
  if (kind == Kind::pool || kind == Kind::imported) return of_device == device;
  if (kind != Kind::mapped) return true;
  return std::find(access.begin(), access.end(), of_device) != access.end();
}

namespace {

AllocationRef enter(Kind kind, void* address, size_t bytes) {
  Driver& all = driver();
  auto allocation = std::make_shared<Allocation>();
  allocation->kind = kind;
  allocation->base = reinterpret_cast<uintptr_t>(address);
  allocation->bytes = bytes;
  allocation->id = all.next_id++;
  allocation->context = current();
  allocation->device = current()->device;
  all.memory[allocation->base] = allocation;
  if (!allocation->in_host()) counter("device_memory") += static_cast<int64_t>(bytes);
  if (allocation->is_pinned()) {
    const int64_t now = counter("pinned") += static_cast<int64_t>(bytes);
    if (now > counter("pinned_most")) counter("pinned_most") = now;
  }
  return allocation;
}

// Or managed memory.
CUresult allocate_device(CUdeviceptr* pointer, size_t bytes, Kind kind) {
  if (!pointer || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > most_bytes || driver().strikes("device_alloc")) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto physical = Physical::make(bytes, current()->device);
  if (!physical) return CUDA_ERROR_OUT_OF_MEMORY;
  const int access = kind == Kind::managed ? PROT_READ | PROT_WRITE : PROT_NONE;
  void* const address = mmap(nullptr, physical->bytes, access, MAP_SHARED, physical->file, 0);
  if (address == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const AllocationRef allocation = enter(kind, address, bytes);
  allocation->physical = physical;
  if (kind == Kind::pool) allocation->context = nullptr;
  if (kind == Kind::managed) driver().protect_managed();
  *pointer = allocation->base;
  return CUDA_SUCCESS;
}

CUresult allocate_pinned(void** pointer, size_t bytes) {
  if (!pointer || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > most_bytes || driver().strikes("host_alloc")) return CUDA_ERROR_OUT_OF_MEMORY;
  void* const address = mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  enter(Kind::pinned, address, bytes);
  *pointer = address;
  return CUDA_SUCCESS;
}

// The allocation that begins there, of a kind that this function gives back.
AllocationRef to_give_back(uintptr_t base, bool (*fits)(Kind), const char* function) {
  const AllocationRef found = driver().find(base);
  if (found && found->base == base && fits(found->kind)) return found;
  misuse(CUDA_ERROR_INVALID_VALUE, "%s: no such allocation", function);
  return nullptr;
}

bool is_any_device(Kind kind) {
  return kind == Kind::device || kind == Kind::managed || kind == Kind::pool;
}
bool is_pool(Kind kind) { return kind == Kind::pool; }
bool is_pinned(Kind kind) { return kind == Kind::pinned; }
bool is_registered(Kind kind) { return kind == Kind::registered; }

// The only pool of a device. Nobody looks into it.
CUmemoryPool pool_of(int device) {
  return reinterpret_cast<CUmemoryPool>((static_cast<uintptr_t>(device) + 1) << 8);
}

// The first version that knows it.
int version_of(CUpointer_attribute attribute) {
  if (attribute == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) return 11030;
  return attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? 9020 : 0;
}

size_t size_of(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return 4;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return 8;
    default:
      return 0;
  }
}

// The value of an attribute that size_of knows.
uint64_t value_of(CUpointer_attribute attribute, const Allocation& at, uintptr_t pointer) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return reinterpret_cast<uint64_t>(at.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return at.is_pinned() || at.is_numa() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return pointer;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return at.sync_memops ? 1 : 0;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return at.id;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return at.kind == Kind::managed ? 1 : 0;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return static_cast<uint64_t>(at.device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return at.base;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return at.bytes;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return at.kind == Kind::pool ? reinterpret_cast<uint64_t>(pool_of(at.device)) : 0;
    default:
      return 1;  // MAPPED
  }
}

CUresult read_attribute(void* data, CUpointer_attribute attribute, const Allocation& at,
                        uintptr_t pointer) {
  if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && !at.in_host()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t value = value_of(attribute, at, pointer);
  std::memcpy(data, &value, size_of(attribute));
  return CUDA_SUCCESS;
}

CUresult unknown_attribute(CUpointer_attribute attribute) {
  return misuse(CUDA_ERROR_INVALID_VALUE, "pointer attribute %u is not known here",
                static_cast<unsigned>(attribute));
}

}  // namespace
}  // namespace standin

using standin::AllocationRef;
using standin::Kind;

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  STANDIN_ENTER(cuPointerGetAttribute);
  if (standin::size_of(attribute) == 0) return standin::unknown_attribute(attribute);
  const AllocationRef found = driver.find(pointer);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  return standin::read_attribute(data, attribute, *found, pointer);
}

// What is not CUDA's gets zeros (and no device), and is no error. A driver that does not know one
// of the attributes tells none.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer) {
  STANDIN_ENTER(cuPointerGetAttributes);
  if (driver.strikes("pointer")) return CUDA_ERROR_UNKNOWN;
  const AllocationRef found = driver.find(pointer);
  for (unsigned i = 0; i < count; ++i) {
    if (driver.version < standin::version_of(attributes[i])) return CUDA_ERROR_INVALID_VALUE;
    const size_t bytes = standin::size_of(attributes[i]);
    if (bytes == 0) return standin::unknown_attribute(attributes[i]);
    std::memset(data[i], attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? 0xfe : 0, bytes);
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
      const int none = -2;
      std::memcpy(data[i], &none, sizeof none);
    }
    if (found) (void)standin::read_attribute(data[i], attributes[i], *found, pointer);
  }
  return CUDA_SUCCESS;
}

// Returns when copies that were begun without the attribute are done.
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr pointer) {
  STANDIN_ENTER_UNSAFE(cuPointerSetAttribute);
  if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  const AllocationRef found = driver.find(pointer);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  if (found->kind != Kind::device) return CUDA_ERROR_NOT_SUPPORTED;
  unsigned is_set = 0;
  std::memcpy(&is_set, value, sizeof is_set);
  found->sync_memops = is_set != 0;
  driver.wait_early(found, &lock);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
  STANDIN_ENTER_CONTEXT(cuMemGetAddressRange_v2);
  const AllocationRef found = driver.find(pointer);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = found->base;
  if (bytes) *bytes = found->bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  STANDIN_ENTER_UNSAFE(cuMemAlloc_v2);
  return standin::allocate_device(pointer, bytes, Kind::device);
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  STANDIN_ENTER_UNSAFE(cuMemFree_v2);
  if (pointer == 0) return CUDA_SUCCESS;
  const AllocationRef found = standin::to_give_back(pointer, standin::is_any_device, __func__);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  driver.wait_device(found->device, &lock);
  if (standin::is_open_elsewhere(*found)) {
    (void)standin::misuse(CUDA_SUCCESS, "cuMemFree_v2: another process has this memory open");
  }
  driver.forget(found);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned flags) {
  STANDIN_ENTER_UNSAFE(cuMemAllocManaged);
  if (flags != 1 && flags != 2) return CUDA_ERROR_INVALID_VALUE;  // global, host
  return standin::allocate_device(pointer, bytes, Kind::managed);
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  STANDIN_ENTER_UNSAFE(cuMemHostAlloc);
  if (flags > 7) return CUDA_ERROR_INVALID_VALUE;
  return standin::allocate_pinned(pointer, bytes);
}

CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  STANDIN_ENTER_UNSAFE(cuMemAllocHost_v2);
  return standin::allocate_pinned(pointer, bytes);
}

CUresult cuMemFreeHost(void* pointer) {
  STANDIN_ENTER_UNSAFE(cuMemFreeHost);
  const AllocationRef found =
      standin::to_give_back(reinterpret_cast<uintptr_t>(pointer), standin::is_pinned, __func__);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  driver.wait_device(found->device, &lock);
  driver.forget(found);
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned) {
  STANDIN_ENTER_UNSAFE(cuMemHostRegister_v2);
  if (!pointer || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto base = reinterpret_cast<uintptr_t>(pointer);
  if (driver.find(base) || driver.find(base + bytes - 1)) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  if (driver.strikes("host_alloc")) return CUDA_ERROR_OUT_OF_MEMORY;
  standin::enter(Kind::registered, pointer, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* pointer) {
  STANDIN_ENTER_UNSAFE(cuMemHostUnregister);
  const AllocationRef found =
      standin::to_give_back(reinterpret_cast<uintptr_t>(pointer), standin::is_registered, __func__);
  if (!found) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  driver.wait_device(found->device, &lock);
  driver.forget(found);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* pointer, unsigned) {
  STANDIN_ENTER_CONTEXT(cuMemHostGetDevicePointer_v2);
  const AllocationRef found = driver.find(reinterpret_cast<uintptr_t>(pointer));
  if (!found || !found->is_pinned()) return CUDA_ERROR_INVALID_VALUE;
  *device = reinterpret_cast<CUdeviceptr>(pointer);
  return CUDA_SUCCESS;
}

// The program may use the memory at once, as what it enqueues comes behind.
CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  STANDIN_ENTER_CONTEXT(cuMemAllocAsync);
  if (!driver.stream_of(stream)) return CUDA_ERROR_INVALID_HANDLE;
  return standin::allocate_device(pointer, bytes, Kind::pool);
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  STANDIN_ENTER(cuMemPoolGetAccess);
  if (!flags || !pool || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool may = pool == standin::pool_of(location->id);
  *flags = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

// From now on it is a misuse to enqueue anything with this memory; what is enqueued keeps it.
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
  STANDIN_ENTER_CONTEXT(cuMemFreeAsync);
  standin::Stream* const stream = driver.stream_of(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  const AllocationRef found = standin::to_give_back(pointer, standin::is_pool, __func__);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  driver.forget(found);
  driver.enqueue(stream, nullptr, {found});
  return CUDA_SUCCESS;
}
