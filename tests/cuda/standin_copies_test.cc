// SPDX-License-Identifier: BSD-3-Clause
//
// The stand-in driver: copies are late, streams are ordered, and nothing leaves its allocation.
#include "tests/cuda/standin_rig.h"

namespace standin {
namespace {

class Copies : public StandIn {
 protected:
  void SetUp() override {
    StandIn::SetUp();
    device = allocate(bytes);
    pinned = pin(bytes);
    one = stream(), two = stream();
    ASSERT_EQ(cuEventCreate(&event, 2), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8_v2(device, 0, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  }
  void TearDown() override {
    standin_release();
    EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(one), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(two), CUDA_SUCCESS);
    EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
    StandIn::TearDown();
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

  static constexpr size_t bytes = 1000;
  CUdeviceptr device = 0;
  std::byte* pinned = nullptr;
  CUstream one = nullptr, two = nullptr;
  CUevent event = nullptr;
};

TEST_F(Copies, AreLate) {
  fill(1);
  standin_hold();
  ASSERT_EQ(cuMemcpyHtoDAsync_v2(device, pinned, bytes, one), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, one), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
  fill(2);  // too early
  standin_release();
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(read(device, bytes), filled(bytes, 2));
  fill(3);
  standin_hold();
  ASSERT_EQ(cuMemcpyDtoHAsync_v2(pinned, device, bytes, one), CUDA_SUCCESS);
  EXPECT_EQ(pinned[0], std::byte{3}) << "not there yet";
  standin_release();
  finish();
  EXPECT_EQ(pinned[0], std::byte{2});
}

TEST_F(Copies, OfPageableMemoryAreStaged) {
  auto source = filled(bytes, 1);
  standin_hold();
  const int64_t before = standin_counter("pageable");
  ASSERT_EQ(cuMemcpyHtoDAsync_v2(device, source.data(), bytes, one), CUDA_SUCCESS);
  EXPECT_EQ(standin_counter("pageable"), before + 1);
  source = filled(bytes, 2);
  EXPECT_EQ(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
  standin_release();
  finish();
  EXPECT_EQ(read(device, bytes), filled(bytes, 1));
  ASSERT_EQ(cuMemcpyDtoHAsync_v2(source.data(), device, bytes, one), CUDA_SUCCESS);
  EXPECT_EQ(source, filled(bytes, 1)) << "back when it returns";
}

TEST_F(Copies, OfOneStreamRunInOrder) {
  for (int turn = 0; turn < 50; ++turn) {
    for (int i = 1; i <= 5; ++i) put(i, one);
    finish();
    ASSERT_EQ(value(), 5);
  }
}

TEST_F(Copies, OfTwoStreamsRunInAnyOrder) {
  int last_is[3] = {};
  for (int turn = 0; turn < 100; ++turn) {
    standin_hold();
    put(1, one);
    put(2, two);
    standin_release();
    finish();
    ++last_is[value()];
  }
  EXPECT_GT(last_is[1], 10);
  EXPECT_GT(last_is[2], 10);
}

TEST_F(Copies, WaitForEvents) {
  for (int turn = 0; turn < 50; ++turn) {
    standin_hold();
    put(1, one);
    ASSERT_EQ(cuEventRecord(event, one), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(two, event, 0), CUDA_SUCCESS);
    put(2, two);
    standin_release();
    finish();
    ASSERT_EQ(value(), 2);
  }
}

TEST_F(Copies, OfTheLegacyStreamAreOrderedWithBlockingStreams) {
  const CUstream blocking = stream(0);
  for (int turn = 0; turn < 50; ++turn) {
    standin_hold();
    put(1, blocking);
    put(2, nullptr);
    put(3, blocking);
    standin_release();
    ASSERT_EQ(cuStreamSynchronize(blocking), CUDA_SUCCESS);
    ASSERT_EQ(value(), 3);
    standin_hold();
    put(4, blocking);
    put(5, nullptr);
    standin_release();
    ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    ASSERT_EQ(value(), 5);
  }
  EXPECT_EQ(cuStreamDestroy_v2(blocking), CUDA_SUCCESS);
}

TEST_F(Copies, StayWithinTheirAllocations) {
  const int64_t before = standin_counter("copies");
  const CUresult wrong = CUDA_ERROR_INVALID_VALUE;
  const CUdeviceptr freed = allocate(bytes);
  ASSERT_EQ(cuMemFree_v2(freed), CUDA_SUCCESS);
  std::byte* const host = pinned;
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(device + 1, host, bytes, one), wrong);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(device - 1, host, 2, one), wrong);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(freed, host, 1, one), wrong);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(host + 1, device, bytes, one), wrong) << "pinned memory ends";
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(host, reinterpret_cast<CUdeviceptr>(&freed), 8, one), wrong)
      << "the processor's memory as the device's";
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(device, reinterpret_cast<void*>(device), 8, one), wrong)
      << "the device's memory as the processor's";
  EXPECT_EQ(standin_counter("copies"), before);
  EXPECT_EQ(standin_forgive(), 6);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(device + bytes - 1, host, 1, one), CUDA_SUCCESS);
}

CUDA_MEMCPY2D grid(CUdeviceptr device, std::byte* host, size_t height) {
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

TEST_F(Copies, InTwoDimensionsLeaveTheGaps) {
  fill(9);
  CUDA_MEMCPY2D copy = grid(device + 90, pinned, 10);
  EXPECT_EQ(cuMemcpy2DAsync_v2(&copy, one), CUDA_SUCCESS) << "the last row ends with the memory";
  finish();
  std::vector<std::byte> wanted(bytes);
  for (size_t i = 0; i < bytes; ++i) wanted[i] = std::byte(i % 100 < 90 ? 0 : 9);
  EXPECT_EQ(read(device, bytes), wanted);
  ++copy.Height;
  EXPECT_EQ(cuMemcpy2DAsync_v2(&copy, one), CUDA_ERROR_INVALID_VALUE);
  --copy.Height, ++copy.dstDevice;
  EXPECT_EQ(cuMemcpy2DAsync_v2(&copy, one), CUDA_ERROR_INVALID_VALUE);
  --copy.dstDevice, copy.srcPitch = 9;
  EXPECT_EQ(cuMemcpy2DAsync_v2(&copy, one), CUDA_ERROR_INVALID_VALUE);
  copy.srcPitch = size_t{1} << 31;
  EXPECT_EQ(cuMemcpy2DAsync_v2(&copy, one), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(standin_forgive(), 4);
}

TEST_F(Copies, AreCountedByDirection) {
  const int64_t in = standin_counter("bytes_in"), out = standin_counter("bytes_out"),
                within = standin_counter("bytes_within"), copies = standin_counter("copies");
  CUDA_MEMCPY2D copy = grid(device, pinned, 3);
  ASSERT_EQ(cuMemcpy2DAsync_v2(&copy, one), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoHAsync_v2(pinned, device, 70, one), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoDAsync_v2(device, device + 500, 500, one), CUDA_SUCCESS);
  EXPECT_EQ(standin_counter("bytes_in"), in + 30);
  EXPECT_EQ(standin_counter("bytes_out"), out + 70);
  EXPECT_EQ(standin_counter("bytes_within"), within + 500);
  EXPECT_EQ(standin_counter("copies"), copies + 3);
  const int64_t calls = standin_counter("cuEventQuery"), waits = standin_counter("waits");
  (void)cuEventQuery(event);
  EXPECT_EQ(standin_counter("cuEventQuery"), calls + 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(standin_counter("waits"), waits + 1);
}

TEST_F(Copies, KeepPoolMemoryThatIsFreedBehindThem) {
  CUdeviceptr pool = 0;
  ASSERT_EQ(cuMemAllocAsync(&pool, bytes, one), CUDA_SUCCESS);
  fill(4);
  standin_hold();
  ASSERT_EQ(cuMemcpyHtoDAsync_v2(pool, pinned, bytes, one), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoDAsync_v2(device, pool, bytes, one), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(pool, one), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(pool, pinned, bytes, one), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(standin_forgive(), 1);
  standin_release();
  finish();
  EXPECT_EQ(read(device, bytes), filled(bytes, 4));
}

}  // namespace
}  // namespace standin
