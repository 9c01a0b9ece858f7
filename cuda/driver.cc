// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/driver.h"

#include <dlfcn.h>

#include <cstdio>

#include "cuda/module.h"

namespace sluice::cuda {
namespace {

constinit Driver bound;

template <typename Function>
bool find(void* handle, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(handle, name));
  return *function != nullptr;
}

}  // namespace

const Driver& driver() { return bound; }

bool bind_driver(void* handle, char* why) {
  Driver found;
  const char* lacking = nullptr;
#define SLUICE_FIND(name, ...) \
  if (!find(handle, #name, &found.name)) lacking = #name;
  SLUICE_CUDA_LATER_FUNCTIONS(SLUICE_FIND)
  SLUICE_CUDA_EARLIER_FUNCTIONS(SLUICE_FIND)
  lacking = nullptr;
  SLUICE_CUDA_FUNCTIONS(SLUICE_FIND)
#undef SLUICE_FIND
  if (lacking) {
    std::snprintf(why, sluice_cuda_why, "the CUDA driver is too old: it has no %s", lacking);
    return false;
  }
  int version = 0;
  if (found.cuDriverGetVersion(&version) != CUDA_SUCCESS || version < SLUICE_CUDA_OLDEST_DRIVER) {
    std::snprintf(why, sluice_cuda_why,
                  "the CUDA driver is too old: it is of CUDA %d.%d, not %d.%d", version / 1000,
                  version % 1000 / 10, SLUICE_CUDA_OLDEST_DRIVER / 1000,
                  SLUICE_CUDA_OLDEST_DRIVER % 1000 / 10);
    return false;
  }
  bound = found;
  return true;
}

bool is_success(const char* function, CUresult result, char* why) {
  if (result == CUDA_SUCCESS) return true;
  const char *name = nullptr, *text = nullptr;
  if (bound.cuGetErrorName(result, &name) != CUDA_SUCCESS) name = nullptr;
  if (bound.cuGetErrorString(result, &text) != CUDA_SUCCESS) text = nullptr;
  std::snprintf(why, sluice_cuda_why, "%s: %s %d (%s)", function, name ? name : "CUDA error",
                result, text ? text : "no description");
  return false;
}

}  // namespace sluice::cuda
