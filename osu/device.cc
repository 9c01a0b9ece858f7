// SPDX-License-Identifier: BSD-3-Clause
#include "osu/device.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace sluice::osu {
namespace {

using Address = unsigned long long;
using Context = void*;

struct Driver {
  int (*cuInit)(unsigned) = nullptr;
  int (*cuGetErrorName)(int, const char**) = nullptr;
  int (*cuDeviceGetCount)(int*) = nullptr;
  int (*cuDeviceGet)(int*, int) = nullptr;
  int (*cuDevicePrimaryCtxRetain)(Context*, int) = nullptr;
  int (*cuCtxSetCurrent)(Context) = nullptr;
  int (*cuMemAlloc_v2)(Address*, size_t) = nullptr;
  int (*cuMemAllocManaged)(Address*, size_t, unsigned) = nullptr;
  int (*cuMemAllocHost_v2)(void**, size_t) = nullptr;
  int (*cuMemFree_v2)(Address) = nullptr;
  int (*cuMemFreeHost)(void*) = nullptr;
  int (*cuMemcpyHtoD_v2)(Address, const void*, size_t) = nullptr;
  int (*cuMemcpyDtoH_v2)(void*, Address, size_t) = nullptr;
};
Driver driver;

std::string look_up(void* library) {
  std::string missing;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (!*function) missing = name;
  };
#define FIND(name) find(#name, &driver.name)
  FIND(cuInit);
  FIND(cuGetErrorName);
  FIND(cuDeviceGetCount);
  FIND(cuDeviceGet);
  FIND(cuDevicePrimaryCtxRetain);
  FIND(cuCtxSetCurrent);
  FIND(cuMemAlloc_v2);
  FIND(cuMemAllocManaged);
  FIND(cuMemAllocHost_v2);
  FIND(cuMemFree_v2);
  FIND(cuMemFreeHost);
  FIND(cuMemcpyHtoD_v2);
  FIND(cuMemcpyDtoH_v2);
#undef FIND
  return missing.empty() ? "" : "the CUDA driver has no " + missing;
}

std::string describe(const char* call, int result) {
  const char* name = nullptr;
  if (driver.cuGetErrorName(result, &name) != 0) name = nullptr;
  return std::string(call) + ": " + (name ? name : "CUDA error " + std::to_string(result));
}

void need(const char* call, int result) {
  if (result == 0) return;
  std::fprintf(stderr, "%s\n", describe(call, result).c_str());
  std::exit(1);
}

Address address_of(const void* memory) { return reinterpret_cast<Address>(memory); }

}  // namespace

std::string open_device(int number) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return std::string("no CUDA driver: ") + dlerror();
  if (std::string wrong = look_up(library); !wrong.empty()) return wrong;
  int devices = 0, device = 0;
  Context context = nullptr;
  if (int result = driver.cuInit(0)) return describe("cuInit", result);
  if (int result = driver.cuDeviceGetCount(&devices)) return describe("cuDeviceGetCount", result);
  if (devices < 1) return "no CUDA device";
  if (int result = driver.cuDeviceGet(&device, number % devices)) {
    return describe("cuDeviceGet", result);
  }
  if (int result = driver.cuDevicePrimaryCtxRetain(&context, device)) {
    return describe("cuDevicePrimaryCtxRetain", result);
  }
  if (int result = driver.cuCtxSetCurrent(context)) return describe("cuCtxSetCurrent", result);
  return "";
}

void* allocate_on(Place place, size_t bytes) {
  constexpr unsigned attach_global = 1;
  Address address = 0;
  void* memory = nullptr;
  switch (place) {
    case Place::host:
      return std::malloc(bytes);
    case Place::device:
      need("cuMemAlloc", driver.cuMemAlloc_v2(&address, bytes));
      break;
    case Place::managed:
      need("cuMemAllocManaged", driver.cuMemAllocManaged(&address, bytes, attach_global));
      break;
    case Place::pinned:
      need("cuMemAllocHost", driver.cuMemAllocHost_v2(&memory, bytes));
      return memory;
  }
  return reinterpret_cast<void*>(address);
}

void free_on(Place place, void* memory) {
  if (place == Place::host) {
    std::free(memory);
  } else if (place == Place::pinned) {
    need("cuMemFreeHost", driver.cuMemFreeHost(memory));
  } else {
    need("cuMemFree", driver.cuMemFree_v2(address_of(memory)));
  }
}

void copy_to_device(void* device, const void* host, size_t bytes) {
  need("cuMemcpyHtoD", driver.cuMemcpyHtoD_v2(address_of(device), host, bytes));
}

void copy_from_device(void* host, const void* device, size_t bytes) {
  need("cuMemcpyDtoH", driver.cuMemcpyDtoH_v2(host, address_of(device), bytes));
}

}  // namespace sluice::osu
