// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cuda/kinds.h"

#include <dlfcn.h>

#include <algorithm>

namespace test {
namespace {

void* library = nullptr;
std::vector<CUcontext> primaries;
CUcontext other_context = nullptr;
int own_device = 0;

int other_device() {
  const int last = static_cast<int>(primaries.size()) - 1;
  return own_device == last ? 0 : last;
}
CUcontext context_of(int device) { return primaries[static_cast<size_t>(device)]; }

// (Drivers before CUDA 11.2 have no pools.)
Kind supported(Kind kind) {
  return kind == Kind::pool && !dlsym(library, "cuMemAllocAsync") ? Kind::mapped : kind;
}

}  // namespace

void* find_in_driver(const char* name) {
  void* const found = dlsym(library, name);
  if (!found) fail(std::string("the driver has no ") + name);
  return found;
}

bool has_in_driver(const char* name) { return dlsym(library, name) != nullptr; }

const std::vector<CUcontext>& primary_contexts() { return primaries; }

void expect_success(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) fail(std::string(what) + " failed: " + std::to_string(result));
}

const char* name_of(Kind kind) {
  static const char* const names[] = {"host",      "device",  "other device", "other context",
                                      "pool",      "mapped",  "lent",         "numa",
                                      "open numa", "managed", "pinned",       "registered"};
  return names[static_cast<int>(kind)];
}

void load_driver(const std::string& path, int own) {
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("the driver can't be loaded: " + path);
  int count = 0;
  expect_success(CUDA(cuInit)(0), "cuInit");
  expect_success(CUDA(cuDeviceGetCount)(&count), "cuDeviceGetCount");
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    CUcontext context = nullptr;
    expect_success(CUDA(cuDeviceGet)(&device, i), "cuDeviceGet");
    expect_success(CUDA(cuDevicePrimaryCtxRetain)(&context, device), "cuDevicePrimaryCtxRetain");
    primaries.push_back(context);
  }
  CUcontext popped = nullptr;
  expect_success(CUDA(cuCtxCreate_v2)(&other_context, 0, own), "cuCtxCreate");
  expect_success(CUDA(cuCtxPopCurrent_v2)(&popped), "cuCtxPopCurrent");
  if (own >= count) fail("there is no device " + std::to_string(own));
  own_device = own;
  expect_success(CUDA(cuCtxSetCurrent)(context_of(own)), "cuCtxSetCurrent");
}

KindMemory::KindMemory(Kind kind, size_t bytes)
    : kind_(supported(kind)), bytes_(std::max<size_t>(bytes, 1)) {
  switch (kind_) {
    case Kind::host:
      host_.resize(bytes_);
      at_ = reinterpret_cast<uintptr_t>(host_.data());
      break;
    case Kind::device:
      expect_success(CUDA(cuMemAlloc_v2)(&at_, bytes_), "cuMemAlloc");
      break;
    case Kind::other_device:
      allocate_in(context_of(other_device()));
      break;
    case Kind::other_context:
      allocate_in(other_context);
      break;
    case Kind::pool:
      expect_success(CUDA(cuMemAllocAsync)(&at_, bytes_, nullptr), "cuMemAllocAsync");
      expect_success(CUDA(cuStreamSynchronize)(nullptr), "cuStreamSynchronize");
      break;
    case Kind::mapped:
    case Kind::lent:
      map(CU_MEM_LOCATION_TYPE_DEVICE);
      break;
    case Kind::numa:
    case Kind::open_numa:
      map(CU_MEM_LOCATION_TYPE_HOST_NUMA);
      break;
    case Kind::managed:
      expect_success(CUDA(cuMemAllocManaged)(&at_, bytes_, 1), "cuMemAllocManaged");
      break;
    case Kind::pinned: {
      void* memory = nullptr;
      expect_success(CUDA(cuMemHostAlloc)(&memory, bytes_, 0), "cuMemHostAlloc");
      at_ = reinterpret_cast<uintptr_t>(memory);
      break;
    }
    case Kind::registered:
      register_own();
  }
}

void KindMemory::allocate_in(CUcontext context) {
  CUcontext popped = nullptr;
  expect_success(CUDA(cuCtxPushCurrent_v2)(context), "cuCtxPushCurrent");
  expect_success(CUDA(cuMemAlloc_v2)(&at_, bytes_), "cuMemAlloc");
  expect_success(CUDA(cuCtxPopCurrent_v2)(&popped), "cuCtxPopCurrent");
}

// (The driver registers whole pages.)
void KindMemory::register_own() {
  constexpr size_t page = 4096;
  host_.resize((bytes_ + 2 * page - 1) / page * page);
  at_ = (reinterpret_cast<uintptr_t>(host_.data()) + page - 1) / page * page;
  expect_success(CUDA(cuMemHostRegister_v2)(data(), bytes_, 0), "cuMemHostRegister");
}

KindMemory::~KindMemory() {
  switch (kind_) {
    case Kind::host:
      break;
    case Kind::pool:
      CUDA(cuMemFreeAsync)(at_, nullptr);
      break;
    case Kind::mapped:
    case Kind::lent:
    case Kind::numa:
    case Kind::open_numa:
      CUDA(cuMemUnmap)(at_, mapped_);
      CUDA(cuMemAddressFree)(at_, mapped_);
      break;
    case Kind::pinned:
      CUDA(cuMemFreeHost)(data());
      break;
    case Kind::registered:
      CUDA(cuMemHostUnregister)(data());
      break;
    case Kind::device:
    case Kind::other_device:
    case Kind::other_context:
    case Kind::managed:
      CUDA(cuMemFree_v2)(at_);
  }
}

void KindMemory::write(const void* from, size_t bytes) {
  if (bytes == 0) return;
  if (is_host()) {
    std::memcpy(data(), from, bytes);
    return;
  }
  CUcontext popped = nullptr;
  if (kind_ == Kind::lent) CUDA(cuCtxPushCurrent_v2)(context_of(other_device()));
  expect_success(CUDA(cuMemcpyHtoD_v2)(at_, from, bytes), "cuMemcpyHtoD");
  if (kind_ == Kind::lent) CUDA(cuCtxPopCurrent_v2)(&popped);
}

void KindMemory::read(void* to, size_t bytes) const {
  if (bytes == 0) return;
  if (is_host()) {
    std::memcpy(to, data(), bytes);
    return;
  }
  CUcontext popped = nullptr;
  if (kind_ == Kind::lent) CUDA(cuCtxPushCurrent_v2)(context_of(other_device()));
  expect_success(CUDA(cuMemcpyDtoH_v2)(to, at_, bytes), "cuMemcpyDtoH");
  if (kind_ == Kind::lent) CUDA(cuCtxPopCurrent_v2)(&popped);
}

void KindMemory::map(CUmemLocationType owner) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {owner, owner == CU_MEM_LOCATION_TYPE_DEVICE ? own_device : 0};
  size_t grain = 0;
  expect_success(
      CUDA(cuMemGetAllocationGranularity)(&grain, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
      "cuMemGetAllocationGranularity");
  mapped_ = (bytes_ + grain - 1) / grain * grain;
  CUmemGenericAllocationHandle handle = 0;
  const int user = kind_ == Kind::lent ? other_device() : own_device;
  const CUmemAccessDesc access[] = {
      {{CU_MEM_LOCATION_TYPE_DEVICE, user}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
      {{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
  const size_t users = kind_ == Kind::open_numa ? 2 : 1;
  expect_success(CUDA(cuMemAddressReserve)(&at_, mapped_, 0, 0, 0), "cuMemAddressReserve");
  expect_success(CUDA(cuMemCreate)(&handle, mapped_, &properties, 0), "cuMemCreate");
  expect_success(CUDA(cuMemMap)(at_, mapped_, 0, handle, 0), "cuMemMap");
  expect_success(CUDA(cuMemSetAccess)(at_, mapped_, access, users), "cuMemSetAccess");
  expect_success(CUDA(cuMemRelease)(handle), "cuMemRelease");
}

}  // namespace test
