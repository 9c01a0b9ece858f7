// SPDX-License-Identifier: BSD-3-Clause
//
// Virtual memory management: addresses, physical memory, and one mapped at the other.
#include <sys/mman.h>

#include <algorithm>

#include "tests/cuda/standin/driver.h"

using standin::Allocation;
using standin::AllocationRef;
using standin::Kind;
using standin::misuse;
using standin::Physical;

namespace {

constexpr size_t granularity = size_t{2} << 20;

CUresult wrong(const char* function) {
  return misuse(CUDA_ERROR_INVALID_VALUE, "%s: wrong address, size or handle", function);
}

// -1: the host.
int user_of(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1;
}

bool is_reserved(uintptr_t address, size_t bytes) {
  const auto& reserved = standin::driver().reserved;
  auto after = reserved.upper_bound(address);
  if (after == reserved.begin()) return false;
  --after;
  return address + bytes <= after->first + after->second;
}

// The mappings that together are exactly this range; none if they are not.
std::vector<AllocationRef> mappings(uintptr_t address, size_t bytes) {
  std::vector<AllocationRef> found;
  const uintptr_t end = address + bytes;
  while (address < end) {
    const AllocationRef next = standin::driver().find(address);
    if (!next || next->kind != Kind::mapped || next->base != address || next->end() > end)
      return {};
    found.push_back(next);
    address = next->end();
  }
  return found;
}

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  STANDIN_ENTER(cuMemGetAllocationGranularity);
  if (!bytes || !properties) return CUDA_ERROR_INVALID_VALUE;
  *bytes = granularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* pointer, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long flags) {
  STANDIN_ENTER(cuMemAddressReserve);
  if (!pointer || bytes == 0 || bytes % granularity != 0 || flags != 0) return wrong(__func__);
  void* const address = mmap(nullptr, bytes + granularity, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const uintptr_t aligned = (begin + granularity - 1) / granularity * granularity;
  const uintptr_t end = begin + bytes + granularity;
  if (aligned > begin) munmap(address, aligned - begin);
  if (aligned + bytes < end) {
    munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
  }
  driver.reserved[aligned] = bytes;
  *pointer = aligned;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes) {
  STANDIN_ENTER(cuMemAddressFree);
  const auto found = driver.reserved.find(pointer);
  if (found == driver.reserved.end() || found->second != bytes) return wrong(__func__);
  const auto next = driver.memory.lower_bound(pointer);
  if (next != driver.memory.end() && next->first < pointer + bytes) return wrong(__func__);
  driver.reserved.erase(found);
  munmap(reinterpret_cast<void*>(static_cast<uintptr_t>(pointer)), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  STANDIN_ENTER(cuMemCreate);
  const bool fits = handle && properties && bytes > 0 && bytes % granularity == 0 && flags == 0 &&
                    properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
                    properties->location.type != 0;
  if (!fits) return wrong(__func__);
  const bool in_host = properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
  const int device = in_host ? -1 : properties->location.id;
  if (device >= driver.devices || (device < 0 && !in_host)) return CUDA_ERROR_INVALID_DEVICE;
  if (driver.strikes("device_alloc")) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto physical = Physical::make(bytes, device);
  if (!physical) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = driver.next_id++;
  driver.handles[*handle] = physical;
  return CUDA_SUCCESS;
}

// What is mapped keeps the memory.
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  STANDIN_ENTER(cuMemRelease);
  return driver.handles.erase(handle) ? CUDA_SUCCESS : wrong(__func__);
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  STANDIN_ENTER(cuMemMap);
  const auto found = driver.handles.find(handle);
  const bool fits = found != driver.handles.end() && offset == 0 && flags == 0 &&
                    bytes == found->second->bytes && is_reserved(pointer, bytes) &&
                    pointer % granularity == 0;
  const auto next = driver.memory.lower_bound(pointer);
  const bool taken =
      driver.find(pointer) || (next != driver.memory.end() && next->first < pointer + bytes);
  if (!fits || taken) return wrong(__func__);
  void* const address = reinterpret_cast<void*>(static_cast<uintptr_t>(pointer));
  if (mmap(address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, found->second->file, 0) ==
      MAP_FAILED) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto allocation = std::make_shared<Allocation>();
  allocation->kind = Kind::mapped;
  allocation->base = pointer;
  allocation->bytes = bytes;
  allocation->id = driver.next_id++;
  allocation->device = found->second->device;
  allocation->physical = found->second;
  driver.memory[pointer] = allocation;
  standin::counter("device_memory") += static_cast<int64_t>(bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  STANDIN_ENTER(cuMemUnmap);
  const std::vector<AllocationRef> found = mappings(pointer, bytes);
  if (found.empty()) return wrong(__func__);
  for (const AllocationRef& mapping : found) {
    driver.wait_device(mapping->device, &lock);
    driver.forget(mapping);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc* access,
                        size_t count) {
  STANDIN_ENTER(cuMemSetAccess);
  const std::vector<AllocationRef> found = mappings(pointer, bytes);
  if (found.empty() || !access || count == 0) return wrong(__func__);
  for (size_t i = 0; i < count; ++i) {
    const int user = user_of(access[i].location);
    const bool may = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (const AllocationRef& mapping : found) {
      std::erase(mapping->access, user);
      if (may) mapping->access.push_back(user);
      if (user >= 0) continue;
      mprotect(reinterpret_cast<void*>(mapping->base), mapping->bytes,
               may ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
  }
  return CUDA_SUCCESS;
}

// As CUDA 13's driver answers: the host is taken for the device of that number.
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr pointer) {
  STANDIN_ENTER(cuMemGetAccess);
  const AllocationRef found = driver.find(pointer);
  if (!flags || !location || !found) return CUDA_ERROR_INVALID_VALUE;
  const int user = location->type == CU_MEM_LOCATION_TYPE_HOST ? location->id : user_of(*location);
  const bool may = found->kind == Kind::mapped && found->serves(user);
  *flags = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}
