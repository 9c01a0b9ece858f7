// SPDX-License-Identifier: BSD-3-Clause
//
// The slabs of a process, over a table of functions that only keeps account.
#include "src/ipc/device_slabs.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sluice {
namespace {

struct FakeSlab {
  int device = 0;
  bool is_alive = true;
};
FakeSlab& slab_of(const SluiceIpcSlab* slab) {
  return *reinterpret_cast<FakeSlab*>(const_cast<SluiceIpcSlab*>(slab));
}

int created = 0, destroyed = 0, opens = 0;
std::map<void*, int> open_slabs;  // where they are, and how often they are open
std::vector<std::unique_ptr<FakeSlab>> fake_slabs;
char opened_memory[8];

constexpr SluiceIpc fake_ipc{
    .version = SLUICE_IPC_VERSION,
    .find_device = nullptr,
    .create =
        [](int device, size_t, char* handle, char* why) {
          std::snprintf(why, sluice_cuda_why, "no such device");
          if (device < 0) return static_cast<SluiceIpcSlab*>(nullptr);
          handle[0] = static_cast<char>(++created);
          fake_slabs.push_back(std::make_unique<FakeSlab>(FakeSlab{device, true}));
          return reinterpret_cast<SluiceIpcSlab*>(fake_slabs.back().get());
        },
    .is_alive = [](const SluiceIpcSlab* slab) { return slab_of(slab).is_alive ? 1 : 0; },
    .memory = [](const SluiceIpcSlab*) { return static_cast<void*>(opened_memory); },
    .open =
        [](SluiceIpcSlab*, const char* handle, char* why) {
          std::snprintf(why, sluice_cuda_why, "it is refused");
          void* const at = opened_memory + handle[0];
          if (handle[0] == 0) return static_cast<void*>(nullptr);
          ++opens;
          ++open_slabs[at];
          return at;
        },
    .close = [](SluiceIpcSlab*, void* opened) { --open_slabs[opened]; },
    .destroy = [](SluiceIpcSlab*) { ++destroyed; },
};

class DeviceSlabsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    created = destroyed = opens = 0;
    open_slabs.clear();
    fake_slabs.clear();
  }
  DeviceSlabs::Slab& make(int device) {
    DeviceSlabs::Slab* const made = slabs_.make(fake_ipc, device, 65536, &why_);
    EXPECT_TRUE(made) << why_;
    return *made;
  }
  static SlabOffer offer(uint64_t slab, char handle) {
    SlabOffer made;
    made.slab = slab;
    made.handle[0] = handle;
    return made;
  }
  int open_now() const {
    int sum = 0;
    for (const auto& [at, times] : open_slabs) sum += times;
    return sum;
  }

  const ProcessId one_{{}, 1}, other_{{}, 2};
  const DeviceUuid device_{};
  std::string why_;
  DeviceSlabs slabs_;
};

TEST_F(DeviceSlabsTest, one_thread_at_a_time_has_the_token) {
  const auto is_free = [&] {
    bool taken = false;
    std::thread([&] { taken = static_cast<bool>(slabs_.try_take()); }).join();
    return taken;
  };
  EXPECT_TRUE(is_free());
  {
    const DeviceSlabs::Token token = slabs_.try_take();
    EXPECT_TRUE(token);
    EXPECT_FALSE(is_free());
  }
  EXPECT_TRUE(is_free());
}

TEST_F(DeviceSlabsTest, there_is_one_on_each_device) {
  EXPECT_FALSE(slabs_.find(0));
  const uint64_t first = make(0).id(), second = make(1).id();
  EXPECT_NE(first, 0U);
  EXPECT_NE(first, second);
  EXPECT_EQ(slabs_.find(0)->id(), first);
  EXPECT_EQ(slabs_.find(1)->id(), second);
  EXPECT_FALSE(slabs_.make(fake_ipc, -1, 65536, &why_));
  EXPECT_EQ(why_, "no such device");
  slabs_.end();
  EXPECT_EQ(destroyed, 2);
}

TEST_F(DeviceSlabsTest, what_is_open_is_not_opened_again) {
  DeviceSlabs::Slab& own = make(0);
  std::byte* const there = own.open(one_, device_, offer(5, 1), &why_);
  EXPECT_EQ(own.open(one_, device_, offer(5, 1), &why_), there);
  EXPECT_NE(own.open(other_, device_, offer(5, 2), &why_), there);
  EXPECT_EQ(opens, 2);
  EXPECT_FALSE(own.open({{}, 3}, device_, offer(5, 0), &why_));
  EXPECT_EQ(why_, "it is refused");
  slabs_.close();
  EXPECT_EQ(open_now(), 0);
  slabs_.end();
}

TEST_F(DeviceSlabsTest, a_later_slab_takes_the_place_of_one_that_is_gone) {
  DeviceSlabs::Slab& own = make(0);
  EXPECT_TRUE(own.open(one_, device_, offer(5, 1), &why_));
  EXPECT_TRUE(own.open(one_, device_, offer(6, 2), &why_));
  EXPECT_EQ(open_slabs[opened_memory + 1], 0);
  EXPECT_EQ(open_slabs[opened_memory + 2], 1);
  DeviceUuid elsewhere{};
  elsewhere[0] = std::byte{1};
  EXPECT_TRUE(own.open(one_, elsewhere, offer(7, 3), &why_));
  EXPECT_EQ(open_now(), 2);
}

TEST_F(DeviceSlabsTest, one_that_is_gone_is_forgotten) {
  const uint64_t first = make(0).id();
  fake_slabs.back()->is_alive = false;
  EXPECT_FALSE(slabs_.find(0));
  EXPECT_NE(make(0).id(), first);
}

TEST_F(DeviceSlabsTest, those_that_others_may_not_close_are_left_to_the_end_of_the_process) {
  EXPECT_TRUE(make(0).open(one_, device_, offer(5, 1), &why_));
  slabs_.leave();
  slabs_.close();
  EXPECT_EQ(open_now(), 0);
  slabs_.end();
  EXPECT_EQ(destroyed, 0);
}

TEST_F(DeviceSlabsTest, one_in_which_a_call_has_failed_is_not_freed) {
  DeviceSlabs::Slab& failed = make(0);
  EXPECT_TRUE(failed.open(one_, device_, offer(5, 1), &why_));
  failed.fail(false);
  EXPECT_TRUE(slabs_.find(0)->has_failed());
  make(1);
  slabs_.close();
  EXPECT_EQ(open_now(), 0);
  slabs_.end();
  EXPECT_EQ(destroyed, 1);
}

// (What a call has left running may still read what is open.)
TEST_F(DeviceSlabsTest, what_a_busy_one_has_open_is_not_closed) {
  DeviceSlabs::Slab& failed = make(1);
  EXPECT_TRUE(failed.open(one_, device_, offer(5, 1), &why_));
  failed.fail(true);
  failed.fail(false);
  slabs_.close();
  EXPECT_EQ(open_now(), 1);
  slabs_.end();
  EXPECT_EQ(destroyed, 0);
}

}  // namespace
}  // namespace sluice
