// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory of the CUDA module's own, and copies between device memory, over the stand-in.
#include <string>

#include "tests/cuda/module_rig.h"

namespace test {
namespace {

class Scratch : public Module {
 protected:
  void* reserve(size_t bytes) { return cuda->allocate(&place_, bytes, why_); }
  int64_t held() const { return count("device_memory") - before_; }
  void SetUp() override {
    Module::SetUp();
    before_ = count("device_memory");
  }

  char why_[sluice_cuda_why] = "";
  int64_t before_ = 0;
};

TEST_F(Scratch, IsKeptAndBounded) {
  EXPECT_EQ(reserve(bound + 1), nullptr);
  EXPECT_EQ(std::string(why_),
            "1048577 bytes of device scratch are more than SLUICE_CUDA_SCRATCH allows (1048576, of "
            "which 0 are held)");
  void* const large = reserve(900 * kilobyte);
  ASSERT_TRUE(large) << why_;
  void* const small = reserve(1);
  ASSERT_TRUE(small) << why_;
  EXPECT_EQ(reserve(100 * kilobyte), nullptr) << "all is in use";
  EXPECT_TRUE(std::strstr(why_, "SLUICE_CUDA_SCRATCH")) << why_;
  cuda->release(large);
  const int64_t freed = count("cuMemFree_v2");
  EXPECT_EQ(reserve(500 * kilobyte), large) << why_;
  EXPECT_EQ(reserve(900 * kilobyte), nullptr);
  cuda->release(large);
  EXPECT_EQ(reserve(900 * kilobyte), large);
  EXPECT_EQ(count("cuMemFree_v2"), freed);
  cuda->release(large);
  cuda->release(small);
  void* const all = reserve(bound);
  EXPECT_TRUE(all) << "others make room: " << why_;
  EXPECT_EQ(held(), static_cast<int64_t>(bound));
  cuda->end();  // (what is in use stays)
  EXPECT_EQ(held(), static_cast<int64_t>(bound));
  cuda->release(all);
  cuda->end();
  EXPECT_EQ(held(), 0);
}

TEST_F(Scratch, IsOfItsContext) {
  void* const first = reserve(kilobyte);
  cuda->release(first);
  CUcontext made = nullptr, popped = nullptr;
  ASSERT_EQ(call<decltype(cuCtxCreate_v2)>("cuCtxCreate_v2")(&made, 0, 1), CUDA_SUCCESS);
  ASSERT_EQ(call<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&popped), CUDA_SUCCESS);
  const SluiceCudaPlace elsewhere{made, 1};
  void* const second = cuda->allocate(&elsewhere, kilobyte, why_);
  EXPECT_NE(second, first);
  EXPECT_EQ(call<decltype(standin_may_use)>("standin_may_use")(
                1, reinterpret_cast<CUdeviceptr>(second), kilobyte),
            true);
  cuda->release(second);
  EXPECT_EQ(reserve(kilobyte), first);
  cuda->release(first);
  ASSERT_EQ(call<decltype(cuCtxDestroy_v2)>("cuCtxDestroy_v2")(made), CUDA_SUCCESS);
  void* const all = reserve(bound);
  EXPECT_TRUE(all) << "what was the destroyed context's does not count: " << why_;
  cuda->release(all);
}

TEST_F(Scratch, SaysWhatTheDriverSays) {
  ASSERT_TRUE(fail("device_alloc", "1"));
  EXPECT_EQ(reserve(kilobyte), nullptr);
  EXPECT_STREQ(why_, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY 2 (out of memory)");
  void* const memory = reserve(kilobyte);
  EXPECT_TRUE(memory);
  cuda->release(memory);
}

TEST_F(Scratch, CopiesWithinAndBetweenDevices) {
  constexpr size_t bytes = 100000;
  CUdeviceptr pointer = 0;
  CUcontext made = nullptr, popped = nullptr;
  ASSERT_EQ(call<decltype(cuCtxCreate_v2)>("cuCtxCreate_v2")(&made, 0, 1), CUDA_SUCCESS);
  ASSERT_EQ(call<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&pointer, bytes), CUDA_SUCCESS);
  ASSERT_EQ(call<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&popped), CUDA_SUCCESS);
  void* const elsewhere = reinterpret_cast<void*>(static_cast<uintptr_t>(pointer));
  auto* const here = static_cast<char*>(allocate(2 * bytes));
  std::vector<char> host(bytes), back(bytes);
  for (size_t i = 0; i < bytes; ++i) host[i] = static_cast<char>(i * 11);
  SluiceCudaStream* const stream = cuda->open(&place_, why_);
  ASSERT_TRUE(stream) << why_;
  copy(stream, here, host.data(), bytes, true);
  EXPECT_EQ(cuda->copy_within(stream, elsewhere, here, bytes, why_), 0) << why_;
  EXPECT_EQ(cuda->copy_within(stream, here + bytes, elsewhere, bytes, why_), 0) << why_;
  copy(stream, here + bytes, back.data(), bytes, false);
  EXPECT_EQ(finish(stream, why_), 1) << why_;
  EXPECT_EQ(back, host);
  cuda->close(stream, 1);
  free(here);
  ASSERT_EQ(call<decltype(cuCtxDestroy_v2)>("cuCtxDestroy_v2")(made), CUDA_SUCCESS);
}

}  // namespace
}  // namespace test
