// SPDX-License-Identifier: BSD-3-Clause
//
// What tests of a CUDA driver share, be it the stand-in or a real one.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "tests/cuda/standin/cuda_driver.h"

// Only the stand-in has these.
extern "C" {
extern decltype(standin_forgive) standin_forgive __attribute__((weak));
extern decltype(standin_hold) standin_hold __attribute__((weak));
extern decltype(standin_release) standin_release __attribute__((weak));
}

namespace standin {

// Device 0's primary context is current.
class AnyDriver : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
  }
  void TearDown() override {
    release();
    CUcontext popped = nullptr;
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    EXPECT_EQ(popped, context);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    expect_misuses(0);
  }
  // The stand-in has called so many calls misuses since it was last asked.
  static void expect_misuses(int64_t count) {
    if (standin_forgive == nullptr) return;
    EXPECT_EQ(standin_forgive(), count);
  }
  // With the stand-in, streams have work queued up when they start.
  static void hold() {
    if (standin_hold != nullptr) standin_hold();
  }
  static void release() {
    if (standin_release != nullptr) standin_release();
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

// With memory to copy between, and two streams.
class AnyDriverCopies : public AnyDriver {
 protected:
  void SetUp() override {
    AnyDriver::SetUp();
    device = allocate(bytes);
    pinned = pin(bytes);
    one = stream(), two = stream();
    ASSERT_EQ(cuEventCreate(&event, 2), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8_v2(device, 0, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  }
  void TearDown() override {
    release();
    EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(one), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(two), CUDA_SUCCESS);
    EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
    AnyDriver::TearDown();
  }
  void fill(int value) { std::memset(pinned, value, bytes); }
  // Enqueues a copy of one byte with this value.
  void put(int value, CUstream in) {
    const auto byte = static_cast<std::byte>(value);
    EXPECT_EQ(cuMemcpyHtoDAsync_v2(device, &byte, 1, in), CUDA_SUCCESS);
  }
  int value() { return static_cast<int>(read(device, 1)[0]); }
  void finish() {
    EXPECT_EQ(cuStreamSynchronize(one), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(two), CUDA_SUCCESS);
  }
  // Ten rows of ten bytes, to rows that are 100 bytes apart.
  static CUDA_MEMCPY2D grid(CUdeviceptr device, std::byte* host, size_t height) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    copy.srcPitch = 10;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = device;
    copy.dstPitch = 100;
    copy.WidthInBytes = 10;
    copy.Height = height;
    return copy;
  }

  static constexpr size_t bytes = 1000;
  CUdeviceptr device = 0;
  std::byte* pinned = nullptr;
  CUstream one = nullptr, two = nullptr;
  CUevent event = nullptr;
};

// What the driver says of a pointer.
struct Answer {
  unsigned type = 77, managed = 77;
  CUcontext context = nullptr;
  int device = 77;
  CUdeviceptr start = 77;
  size_t bytes = 77;
};

inline Answer ask(CUdeviceptr pointer) {
  Answer answer;
  CUpointer_attribute which[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* data[] = {&answer.type,   &answer.managed, &answer.context,
                  &answer.device, &answer.start,   &answer.bytes};
  EXPECT_EQ(cuPointerGetAttributes(6, which, data, pointer), CUDA_SUCCESS);
  return answer;
}

}  // namespace standin
