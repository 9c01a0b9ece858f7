// SPDX-License-Identifier: BSD-3-Clause
//
// The stand-in driver: kernels that run until somebody ends them.
#include <atomic>
#include <thread>

#include "tests/cuda/standin_rig.h"

namespace standin {
namespace {

struct Kernel {
  std::atomic<uint64_t> number{0};  // once it has started
  std::atomic<CUresult> error{CUDA_SUCCESS};

  static void start(void* argument, uint64_t number, CUresult error) {
    auto* const self = static_cast<Kernel*>(argument);
    self->error = error;
    self->number = number;
  }
  void launch(CUstream stream) { EXPECT_NE(standin_launch(stream, start, this), 0U); }
  bool has_started() const { return number != 0; }
  void await() const {
    while (!has_started()) std::this_thread::yield();
  }
  void end() const {
    await();
    standin_end_kernel(number);
  }
};

using Kernels = StandIn;

TEST_F(Kernels, RunOneAtATimeOnADeviceInTheirOrder) {
  const CUstream one = stream(), two = stream(), three = stream(), free = stream();
  const CUdeviceptr device = allocate(8);
  std::byte* const pinned = pin(8);
  Kernel first, second, third, elsewhere;
  first.launch(one);
  second.launch(two);
  third.launch(three);
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 1), CUDA_SUCCESS);
  elsewhere.launch(nullptr);
  elsewhere.end();
  ASSERT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
  first.await();
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(pinned, device, 8, free), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(free), CUDA_SUCCESS) << "copies go on";
  EXPECT_EQ(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
  EXPECT_FALSE(second.has_started());
  first.end();
  EXPECT_EQ(cuStreamSynchronize(one), CUDA_SUCCESS);
  second.await();
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(pinned, device, 8, free), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(free), CUDA_SUCCESS);
  EXPECT_FALSE(third.has_started());
  second.end();
  third.end();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  for (const CUstream each : {one, two, three, free}) EXPECT_EQ(cuStreamDestroy_v2(each), 0U);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
}

// One that waits for its own stream takes no slot from another.
TEST_F(Kernels, StartWhenTheirStreamHasComeToThem) {
  const CUstream busy = stream(), ready = stream();
  Kernel early, late;
  standin_occupy(busy);
  early.launch(busy);
  late.launch(ready);
  late.end();
  EXPECT_EQ(cuStreamSynchronize(ready), CUDA_SUCCESS);
  EXPECT_FALSE(early.has_started());
  standin_vacate();
  early.end();
  EXPECT_EQ(cuStreamSynchronize(busy), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(busy), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(ready), CUDA_SUCCESS);
  EXPECT_EQ(standin_launch(busy, Kernel::start, &early), 0U) << "the stream is gone";
}

TEST_F(Kernels, HearOfABrokenContext) {
  CUcontext made = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&made, 0, 0), CUDA_SUCCESS);
  const CUdeviceptr device = allocate(8);
  ASSERT_TRUE(standin_fail("copy", "1"));
  uint64_t value = 0;
  EXPECT_EQ(cuMemcpyHtoD_v2(device, &value, 8), CUDA_ERROR_ILLEGAL_ADDRESS);
  Kernel kernel;
  kernel.launch(nullptr);
  kernel.end();
  EXPECT_EQ(kernel.error, CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_EQ(cuCtxDestroy_v2(made), CUDA_SUCCESS);
}

TEST_F(Kernels, UseTheirDevicesMemoryAndTheHosts) {
  const CUdeviceptr device = allocate(8);
  std::byte* const pinned = pin(8);
  const auto host = reinterpret_cast<CUdeviceptr>(pinned);
  uint64_t value = 7, found = 0;
  EXPECT_TRUE(standin_store(0, device, &value, 8));
  EXPECT_TRUE(standin_load(0, &found, device, 8));
  EXPECT_EQ(found, 7U);
  EXPECT_TRUE(standin_store(1, host, &value, 8));
  EXPECT_EQ(pinned[0], std::byte{7});
  EXPECT_TRUE(standin_may_use(0, device, 8));
  EXPECT_FALSE(standin_may_use(0, device, 9));
  EXPECT_FALSE(standin_may_use(1, device, 8)) << "another device's";
  EXPECT_FALSE(standin_may_use(0, reinterpret_cast<CUdeviceptr>(&value), 8)) << "pageable";
  EXPECT_EQ(standin_forgive(), 0) << "asking is none";
  EXPECT_FALSE(standin_load(1, &found, device, 8));
  EXPECT_FALSE(standin_store(0, device + 1, &value, 8));
  EXPECT_EQ(standin_forgive(), 2);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
}

}  // namespace
}  // namespace standin
