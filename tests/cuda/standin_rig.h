// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the stand-in driver share.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "tests/cuda/standin/cuda_driver.h"

namespace standin {

// Device 0's primary context is current. At the end nothing may be left.
class StandIn : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
  }
  void TearDown() override {
    standin_release();
    CUcontext popped = nullptr;
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    EXPECT_EQ(popped, context);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    for (const char* name : {"contexts", "streams", "events", "pinned", "device_memory"}) {
      EXPECT_EQ(standin_counter(name), 0) << name;
    }
    EXPECT_EQ(standin_forgive(), 0);
  }
  static CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc_v2(&pointer, bytes), CUDA_SUCCESS);
    return pointer;
  }
  static std::byte* pin(size_t bytes) {
    void* pointer = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&pointer, bytes, 0), CUDA_SUCCESS);
    return static_cast<std::byte*>(pointer);
  }
  static CUstream stream(unsigned flags = 1) {
    CUstream made = nullptr;
    EXPECT_EQ(cuStreamCreate(&made, flags), CUDA_SUCCESS);
    return made;
  }
  static std::vector<std::byte> read(CUdeviceptr pointer, size_t bytes) {
    std::vector<std::byte> found(bytes);
    EXPECT_EQ(cuMemcpyDtoH_v2(found.data(), pointer, bytes), CUDA_SUCCESS);
    return found;
  }
  static std::vector<std::byte> filled(size_t bytes, int value) {
    return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
  }

  CUcontext context = nullptr;
};

}  // namespace standin
