// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of short runs by the CUDA module, over the stand-in driver, beside a plain loop.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>

#include "tests/cuda/module_rig.h"

namespace test {
namespace {

class Packing : public Module {
 protected:
  static constexpr size_t room = size_t{12} << 20;

  void SetUp() override {
    Module::SetUp();
    device_ = static_cast<std::byte*>(allocate(room));
    image_.resize(room);
    for (size_t i = 0; i < room; ++i) image_[i] = static_cast<std::byte>(random_());
    host_.resize(room);
    char why[sluice_cuda_why] = "";
    stream_ = cuda->open(&place_, why);
    ASSERT_TRUE(stream_) << why;
    copy(stream_, device_, image_.data(), room, true);
    ASSERT_EQ(finish(stream_, why), 1) << why;
  }
  void TearDown() override {
    cuda->close(stream_, 1);
    free(device_);
    Module::TearDown();
  }

  // One kind: `count` runs of `bytes` at a distance, from an offset in the buffer on.
  void add(size_t offset, ptrdiff_t stride, size_t count, size_t bytes) {
    runs_.push_back({device_ + offset, host_.data() + packed_, stride, bytes, count, bytes});
    packed_ += count * bytes;
    ASSERT_LE(packed_, room);
  }
  void clear() {
    runs_.clear();
    packed_ = 0;
  }

  // What the copy should do, run by run.
  template <typename Each>
  void each_run(Each each) const {
    for (const SluiceCudaRuns& kind : runs_) {
      const ptrdiff_t offset = static_cast<std::byte*>(kind.device) - device_;
      const ptrdiff_t host = static_cast<std::byte*>(kind.host) - host_.data();
      for (size_t i = 0; i < kind.count; ++i) {
        const auto row = static_cast<ptrdiff_t>(i);
        each(static_cast<size_t>(offset + row * kind.device_stride),
             static_cast<size_t>(host) + i * kind.host_stride, kind.bytes);
      }
    }
  }

  // Copies from the device, then back to other places' contents, and looks at every byte.
  void compare() {
    char why[sluice_cuda_why] = "";
    std::fill(host_.begin(), host_.end(), std::byte{0x5a});
    std::vector<std::byte> wanted = host_;
    each_run([&](size_t device, size_t host, size_t bytes) {
      std::copy_n(image_.begin() + static_cast<ptrdiff_t>(device), bytes,
                  wanted.begin() + static_cast<ptrdiff_t>(host));
    });
    ASSERT_EQ(cuda->copy(stream_, runs_.data(), runs_.size(), 0, why), 0) << why;
    ASSERT_EQ(finish(stream_, why), 1) << why;
    ASSERT_TRUE(host_ == wanted);
    for (std::byte& each : host_) each = static_cast<std::byte>(random_());
    each_run([&](size_t device, size_t host, size_t bytes) {
      std::copy_n(host_.begin() + static_cast<ptrdiff_t>(host), bytes,
                  image_.begin() + static_cast<ptrdiff_t>(device));
    });
    std::vector<std::byte> back(room);
    ASSERT_EQ(cuda->copy(stream_, runs_.data(), runs_.size(), 1, why), 0) << why;
    copy(stream_, device_, back.data(), room, false);
    ASSERT_EQ(finish(stream_, why), 1) << why;
    ASSERT_TRUE(back == image_);
  }

  char why_[sluice_cuda_why] = "";
  std::byte* device_ = nullptr;
  std::vector<std::byte> image_, host_;  // what the device has; what was packed
  std::vector<SluiceCudaRuns> runs_;
  size_t packed_ = 0;
  SluiceCudaStream* stream_ = nullptr;
  std::mt19937_64 random_{std::random_device{}()};
};

TEST_F(Packing, TakesOneLaunchAndOneCopyForShortRows) {
  const int64_t launches = count("launches"), copies = count("copies");
  const int64_t within = count("bytes_within");
  char why[sluice_cuda_why] = "";
  add(8, 24, 1000, 8);
  ASSERT_EQ(cuda->copy(stream_, runs_.data(), 1, 0, why), 0) << why;
  EXPECT_EQ(count("launches") - launches, 1);
  EXPECT_EQ(count("copies") - copies, 1);
  EXPECT_EQ(count("bytes_within"), within);
  ASSERT_EQ(finish(stream_, why), 1) << why;
  compare();
}

TEST_F(Packing, TakesFewLaunchesForIrregularRuns) {
  char why[sluice_cuda_why] = "";
  for (size_t i = 0, at = 0; i < 1000; ++i) {
    const size_t bytes = 1 + random_() % 200;
    add(at, 0, 1, bytes);
    at += bytes + 1 + random_() % 30;
  }
  const int64_t launches = count("launches"), copies = count("copies");
  ASSERT_EQ(cuda->copy(stream_, runs_.data(), runs_.size(), 1, why), 0) << why;
  EXPECT_EQ(count("launches") - launches, 7) << "160 runs each";
  EXPECT_EQ(count("copies") - copies, 1);
  ASSERT_EQ(finish(stream_, why), 1) << why;
  copy(stream_, device_, image_.data(), room, false);
  ASSERT_EQ(finish(stream_, why), 1) << why;
  compare();
}

TEST_F(Packing, LeavesLongAndFewRunsToTheDriver) {
  char why[sluice_cuda_why] = "";
  const int64_t launches = count("launches"), copies = count("copies");
  add(0, 512, 1000, 256);
  add(600000, 24, 63, 8);
  add(700000, -24, 6, 8);
  ASSERT_EQ(cuda->copy(stream_, runs_.data(), runs_.size(), 0, why), 0) << why;
  EXPECT_EQ(count("launches") - launches, 0);
  EXPECT_EQ(count("copies") - copies, 1 + 1 + 6);
  ASSERT_EQ(finish(stream_, why), 1) << why;
  compare();
}

// On the host, members lie one behind the other, structure after structure.
TEST_F(Packing, TakesOneLaunchForEachMemberOfStructures) {
  char why[sluice_cuda_why] = "";
  const size_t offsets[] = {0, 4, 16}, bytes[] = {1, 8, 6}, distance = 15;
  for (const size_t count : {10, 400, 100000}) {
    clear();
    for (size_t i = 0, at = 0; i < 3; at += bytes[i++]) {
      runs_.push_back({device_ + 3 + offsets[i], host_.data() + at, 24, distance, count, bytes[i]});
    }
    const int64_t launches = Module::count("launches"), copies = Module::count("copies");
    ASSERT_EQ(cuda->copy(stream_, runs_.data(), 3, 0, why), 0) << why;
    const int64_t pieces = count == 10 ? 0 : count == 400 ? 1 : 6;
    EXPECT_EQ(Module::count("launches") - launches, 3 * pieces);
    EXPECT_EQ(Module::count("copies") - copies, count == 10 ? 3 : pieces);
    ASSERT_EQ(finish(stream_, why), 1) << why;
    compare();
    if (HasFatalFailure()) return;
  }
  runs_[2].bytes = 5;  // a gap
  const int64_t launches = Module::count("launches");
  compare();
  EXPECT_EQ(Module::count("launches") - launches, 0);
}

// With gaps on the host too, nothing between the runs may be written there.
TEST_F(Packing, LeavesGapsOnTheHostToTheDriver) {
  runs_.push_back({device_, host_.data(), 24, 16, 1000, 8});
  const int64_t launches = count("launches");
  compare();
  EXPECT_EQ(count("launches") - launches, 0);
}

TEST_F(Packing, GoesThroughScratchInPieces) {
  add(3, 11, 500000, 7);
  add(6000000, 40, 100000, 32);  // 3.5 and 3.2 MB; the bound is one
  const int64_t launches = count("launches");
  compare();
  EXPECT_GE(count("launches") - launches, 2 * 7);
}

// Kinds of all sorts in a row: any lengths, alignments, counts and directions, none over another.
TEST_F(Packing, IsALoopOverRuns) {
  const auto seed = std::random_device{}();
  random_.seed(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (int i = 0; i < 12; ++i) {
    clear();
    for (size_t kinds = 1 + random_() % 300, at = random_() % 64; kinds > 0; --kinds) {
      const size_t unit = size_t{1} << random_() % 6;
      const size_t bytes = random_() % 8 == 0 ? 256 + random_() % 300 : unit * (1 + random_() % 7);
      const size_t count = random_() % 4 == 0 ? 1 + random_() % 200 : 1 + random_() % 3;
      const size_t distance = bytes + random_() % 3 * unit;
      const bool descends = random_() % 5 == 0;
      if (at + (count + 1) * distance > room) break;
      const size_t first = descends ? at + (count - 1) * distance : at;
      add(first, descends ? -static_cast<ptrdiff_t>(distance) : static_cast<ptrdiff_t>(distance),
          count, bytes);
      if (HasFatalFailure()) return;
      at += count * distance + random_() % 40;
    }
    compare();
    if (HasFatalFailure()) return;
  }
}

// MPI lets a sender name bytes twice.
TEST_F(Packing, ReadsRunsThatOverlap) {
  char why[sluice_cuda_why] = "";
  add(0, 3, 1000, 8);
  const int64_t launches = count("launches");
  ASSERT_EQ(cuda->copy(stream_, runs_.data(), 1, 0, why), 0) << why;
  EXPECT_EQ(count("launches") - launches, 1);
  ASSERT_EQ(finish(stream_, why), 1) << why;
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(std::memcmp(&host_[8 * i], &image_[3 * i], 8), 0) << i;
  }
}

TEST_F(Packing, DoesWithoutScratch) {
  void* const all = cuda->allocate(&place_, bound, why_);
  ASSERT_TRUE(all) << why_;
  add(8, 24, 1000, 8);
  const int64_t launches = count("launches");
  compare();
  EXPECT_EQ(count("launches") - launches, 0);
  cuda->release(all);
  compare();
  EXPECT_EQ(count("launches") - launches, 2);
}

TEST_F(Packing, GivesScratchBackAtTheEndOfTheCall) {
  add(8, 24, 1000, 8);
  compare();
  EXPECT_EQ(cuda->allocate(&place_, bound, why_), nullptr) << "a stream has some";
  char why[sluice_cuda_why] = "";
  cuda->close(stream_, 1);
  void* const all = cuda->allocate(&place_, bound, why_);
  EXPECT_TRUE(all) << why_;
  cuda->release(all);
  stream_ = cuda->open(&place_, why);
  ASSERT_TRUE(stream_) << why;
  compare();
}

TEST_F(Packing, SaysWhatFailed) {
  char why[sluice_cuda_why] = "";
  add(8, 24, 1000, 8);
  for (const int to_device : {0, 1}) {
    ASSERT_TRUE(fail("launch", "1"));
    EXPECT_EQ(cuda->copy(stream_, runs_.data(), 1, to_device, why), -1);
    EXPECT_TRUE(std::strstr(why, "cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES 701")) << why;
  }
  ASSERT_EQ(finish(stream_, why), 1) << why;
}

// In a process of its own, because it is for good. Exits with 0 if all is as it should be.
class RefusedKernels : public Packing {
 protected:
  [[noreturn]] void use() {
    char why[sluice_cuda_why] = "";
    const void* const operands[] = {device_, device_};
    const auto reduce = [&] {
      return cuda->reduce(stream_, sluice_cuda_int8, sluice_cuda_sum, operands, 2, device_, 5, why);
    };
    (void)fail("module", "1+");
    EXPECT_EQ(cuda->can_reduce(sluice_cuda_int8, sluice_cuda_sum), 1);
    EXPECT_EQ(reduce(), -1);
    EXPECT_EQ(std::string(why).substr(0, 60),
              std::string("cuModuleLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION 222 (the provided")
                  .substr(0, 60));
    EXPECT_EQ(cuda->can_reduce(sluice_cuda_int8, sluice_cuda_sum), 0);
    EXPECT_EQ(cuda->can_reduce(sluice_cuda_float64, sluice_cuda_max), 0);
    add(8, 24, 1000, 8);
    compare();
    const int64_t loads = count("cuModuleLoadData");
    compare();
    EXPECT_EQ(count("cuModuleLoadData"), loads) << "the driver is not asked again";
    EXPECT_EQ(count("launches"), 0);
    std::fflush(nullptr);
    _exit(HasFailure() ? 1 : 0);
  }
};

TEST_F(RefusedKernels, AreDoneWithout) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(use(), testing::ExitedWithCode(0), "");
}

// Not with the commands of the compute engine, which processes that share a device take turns on.
TEST_F(Packing, LeavesShortCopiesToACopyEngine) {
  char why[sluice_cuda_why] = "";
  std::vector<std::byte> back(size_t{64} << 10);
  const int64_t rows = count("cuMemcpy2DAsync_v2"), runs = count("cuMemcpyHtoDAsync_v2");
  const size_t sizes[] = {2, 4, 24 << 10, 1, 5, 32 << 10};
  for (const size_t bytes : sizes) {
    copy(stream_, device_ + 3, image_.data() + bytes, bytes, true);
    copy(stream_, device_ + 3, back.data(), bytes, false);
    ASSERT_EQ(finish(stream_, why), 1) << why;
    EXPECT_EQ(std::memcmp(back.data(), image_.data() + bytes, bytes), 0) << bytes;
  }
  EXPECT_EQ(count("cuMemcpy2DAsync_v2") - rows, 3);
  EXPECT_EQ(count("cuMemcpyHtoDAsync_v2") - runs, 3);
}

TEST_F(Packing, FailsLaterIfAKernelDoes) {
  CUcontext made = nullptr, popped = nullptr;
  CUdeviceptr pointer = 0;
  char why[sluice_cuda_why] = "";
  ASSERT_EQ(call<decltype(cuCtxCreate_v2)>("cuCtxCreate_v2")(&made, 0, 1), CUDA_SUCCESS);
  ASSERT_EQ(call<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&pointer, 100000), CUDA_SUCCESS);
  ASSERT_EQ(call<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&popped), CUDA_SUCCESS);
  const SluiceCudaPlace place{made, 1};
  SluiceCudaStream* const stream = cuda->open(&place, why);
  ASSERT_TRUE(stream) << why;
  const SluiceCudaRuns runs{
      reinterpret_cast<void*>(static_cast<uintptr_t>(pointer)), host_.data(), 24, 8, 1000, 8};
  ASSERT_TRUE(fail("kernel", "1"));
  const int begun = cuda->copy(stream, &runs, 1, 0, why);  // (to pageable memory: waits)
  const int reached = begun == 0 ? finish(stream, why) : -1;
  EXPECT_EQ(reached, -1);
  EXPECT_TRUE(std::strstr(why, "CUDA_ERROR_ILLEGAL_ADDRESS")) << why;
  cuda->close(stream, 0);
  EXPECT_EQ(call<decltype(cuCtxDestroy_v2)>("cuCtxDestroy_v2")(made), CUDA_SUCCESS);
}

}  // namespace
}  // namespace test
