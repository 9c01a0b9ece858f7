// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/loaded_kernels.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <new>
#include <utility>

#include "cuda/module.h"

namespace sluice::cuda {
namespace {

constexpr unsigned block_threads = 256, most_grid = 4096;  // the largest grid: a million threads

// What is loaded in a context.
struct Loaded {
  Loaded* next;
  CUcontext context;
  Canary canary;
  CUmodule modules[image_count];
};

constinit std::mutex mutex;
constinit Loaded* all = nullptr;
constinit std::atomic<bool> is_refused{false};

// Errors that say that this driver will take no such image, whenever it is asked.
bool is_about_images(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    case CUDA_ERROR_NOT_SUPPORTED:
      return true;
    default:
      return false;
  }
}

void forget_gone() {
  for (Loaded** link = &all; *link;) {
    if (is_alive((*link)->canary, (*link)->context)) {
      link = &(*link)->next;
    } else {
      delete std::exchange(*link, (*link)->next);
    }
  }
}

// For the current context.
Loaded* find_loaded(CUcontext context, char* why) {
  for (Loaded* each = all; each; each = each->next) {
    if (each->context == context && is_alive(each->canary, context)) return each;
  }
  forget_gone();
  const Canary canary = make_canary();
  auto* const made = canary.id ? new (std::nothrow) Loaded{all, context, canary, {}} : nullptr;
  if (!made) {
    if (canary.address) driver().cuMemFree_v2(canary.address);
    std::snprintf(why, sluice_cuda_why, "no memory to load kernels");
    return nullptr;
  }
  return all = made;
}

// The mutex must be held.
CUmodule find_module(CUcontext context, Image image, char* why) {
  Loaded* const loaded = find_loaded(context, why);
  if (!loaded) return nullptr;
  const auto number = static_cast<unsigned>(image);
  CUmodule& module = loaded->modules[number];
  if (module) return module;
  CUmodule made = nullptr;
  const CUresult result = driver().cuModuleLoadData(&made, images[number]);
  if (is_about_images(result)) is_refused = true;
  if (!is_success("cuModuleLoadData", result, why)) return nullptr;
  return module = made;
}

CUfunction find_function(CUcontext context, const Kernel& kernel, char* why) {
  const std::lock_guard lock(mutex);
  CUfunction function = nullptr;
  const CUmodule module = find_module(context, kernel.image, why);
  if (!module) return nullptr;
  const CUresult result = driver().cuModuleGetFunction(&function, module, kernel.name);
  return is_success("cuModuleGetFunction", result, why) ? function : nullptr;
}

}  // namespace

bool load(const SluiceCudaStream& stream, Image image, char* why) {
  const std::lock_guard lock(mutex);
  return find_module(stream.context, image, why) != nullptr;
}

bool launch(const SluiceCudaStream& stream, const Kernel& kernel, const void* arguments,
            size_t threads, char* why) {
  const CUfunction function = find_function(stream.context, kernel, why);
  if (!function) return false;
  void* parameters[] = {const_cast<void*>(arguments)};
  const size_t blocks =
      std::clamp<size_t>((threads + block_threads - 1) / block_threads, 1, most_grid);
  const CUresult result =
      driver().cuLaunchKernel(function, static_cast<unsigned>(blocks), 1, 1, block_threads, 1, 1, 0,
                              stream.stream, parameters, nullptr);
  return is_success("cuLaunchKernel", result, why);
}

bool are_kernels_usable() { return !is_refused.load(std::memory_order_relaxed); }

void unload_kernels() {
  const std::lock_guard lock(mutex);
  forget_gone();
  while (Loaded* const loaded = all) {
    char why[sluice_cuda_why];
    all = loaded->next;
    const Current current(loaded->context, why);
    for (const CUmodule module : loaded->modules) {
      if (module) driver().cuModuleUnload(module);
    }
    driver().cuMemFree_v2(loaded->canary.address);
    delete loaded;
  }
}

}  // namespace sluice::cuda
