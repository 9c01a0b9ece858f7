// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the CUDA module by itself share: the module over the stand-in driver.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cuda/module.h"
#include "tests/cuda/standin/cuda_driver.h"

extern "C" const SluiceCuda* sluice_cuda();

namespace test {

inline constexpr size_t bound = size_t{1} << 20, kilobyte = 1024;

// Device 0's primary context is retained. At the end nothing may be left.
class Module : public testing::Test {
 protected:
  void SetUp() override {
    const char* const top = std::getenv("top_builddir");
    const std::string path = std::string(top ? top : ".") + "/tests/cuda/standin/libcuda.so.1";
    char why[sluice_cuda_why] = "";
    const SluiceCudaSettings settings{
        .pinned = bound, .scratch = bound, .blocking_streams = 0, .sync_contexts = 1};
    driver_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(driver_) << dlerror();
    ASSERT_EQ(cuda->begin(driver_, &settings, why), 0) << why;
    ASSERT_EQ(call<decltype(cuInit)>("cuInit")(0), CUDA_SUCCESS);
    ASSERT_EQ(call<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context_, 0),
              CUDA_SUCCESS);
    place_ = {context_, 0};
  }
  void TearDown() override {
    cuda->end();
    for (const char* name : {"pinned", "streams", "events", "modules", "misuse"}) {
      EXPECT_EQ(count(name), 0) << name;
    }
    EXPECT_EQ(count("retained"), 1);
    EXPECT_EQ(call<decltype(cuDevicePrimaryCtxRelease)>("cuDevicePrimaryCtxRelease")(0),
              CUDA_SUCCESS);
    EXPECT_EQ(count("contexts"), 0);
  }
  template <typename Function>
  Function* call(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(driver_, name));
  }
  int64_t count(const char* name) const {
    return call<decltype(standin_counter)>("standin_counter")(name);
  }
  bool fail(const char* what, const char* which) const {
    return call<decltype(standin_fail)>("standin_fail")(what, which);
  }
  void* allocate(size_t bytes) const {
    CUdeviceptr pointer = 0;
    CUcontext popped = nullptr;
    call<decltype(cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2")(context_);
    EXPECT_EQ(call<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&pointer, bytes), CUDA_SUCCESS);
    call<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&popped);
    return reinterpret_cast<void*>(static_cast<uintptr_t>(pointer));
  }
  void free(void* memory) const {
    CUcontext popped = nullptr;
    call<decltype(cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2")(context_);
    EXPECT_EQ(call<decltype(cuMemFree_v2)>("cuMemFree_v2")(reinterpret_cast<CUdeviceptr>(memory)),
              CUDA_SUCCESS);
    call<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&popped);
  }
  // Begins a contiguous copy.
  void copy(SluiceCudaStream* stream, void* device, void* host, size_t bytes,
            bool to_device) const {
    char why[sluice_cuda_why] = "";
    const SluiceCudaRuns runs{device, host, 0, 0, 1, bytes};
    EXPECT_EQ(cuda->copy(stream, &runs, 1, to_device ? 1 : 0, why), 0) << why;
  }
  // 1 if all that is in the stream is done, -1 if it has failed.
  int finish(SluiceCudaStream* stream, char* why) const {
    int reached = cuda->mark(stream, 0, why);
    while (reached == 0 && (reached = cuda->reached(stream, 0, why)) == 0)
      std::this_thread::yield();
    return reached;
  }

  const SluiceCuda* const cuda = sluice_cuda();
  void* driver_ = nullptr;
  CUcontext context_ = nullptr;
  SluiceCudaPlace place_{};
};

}  // namespace test
