// SPDX-License-Identifier: BSD-3-Clause
//
// The stand-in driver: copies are late, streams are ordered, and nothing leaves its allocation.
#include "tests/cuda/standin_rig.h"

namespace standin {
namespace {

class Copies : public AnyDriverCopies {
 protected:
  void TearDown() override {
    AnyDriverCopies::TearDown();
    expect_nothing_left();
  }
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

TEST_F(Copies, OfPageableMemoryAreCounted) {
  auto source = filled(bytes, 1);
  standin_hold();
  const int64_t before = standin_counter("pageable");
  ASSERT_EQ(cuMemcpyHtoDAsync_v2(device, source.data(), bytes, one), CUDA_SUCCESS);
  EXPECT_EQ(standin_counter("pageable"), before + 1);
  EXPECT_EQ(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
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

TEST_F(Copies, InTwoDimensionsStayWithinThem) {
  CUDA_MEMCPY2D copy = grid(device + 90, pinned, 11);
  EXPECT_EQ(cuMemcpy2DAsync_v2(&copy, one), CUDA_ERROR_INVALID_VALUE);
  --copy.Height, ++copy.dstDevice;
  EXPECT_EQ(cuMemcpy2DAsync_v2(&copy, one), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(standin_forgive(), 2);
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

TEST_F(Copies, OfPoolMemoryComeBeforeItIsFreed) {
  CUdeviceptr pool = 0;
  ASSERT_EQ(cuMemAllocAsync(&pool, bytes, one), CUDA_SUCCESS);
  standin_hold();
  ASSERT_EQ(cuMemFreeAsync(pool, one), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(pool, pinned, bytes, one), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(standin_forgive(), 1);
}

}  // namespace
}  // namespace standin
