// SPDX-License-Identifier: BSD-3-Clause
//
// NCCL's communicators in a process, over a table of functions that only keeps account.
#include "src/nccl/device_group.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace sluice {
namespace {

struct FakeGroup {
  SluiceNcclState state = sluice_nccl_ready;
  std::string reason;  // why it has failed, or has no memory
  int aborts = 0;
};

FakeGroup& account_of(SluiceNcclGroup* group) { return *reinterpret_cast<FakeGroup*>(group); }

int fail_with(const FakeGroup& group, char* why) {
  std::snprintf(why, sluice_cuda_why, "%s", group.reason.c_str());
  return -1;
}

constexpr SluiceNccl fake_table{
    .version = SLUICE_NCCL_VERSION,
    .open = nullptr,
    .find_device = nullptr,
    .unique_id = nullptr,
    .create = [](int, const char*, int, int,
                 char*) { return reinterpret_cast<SluiceNcclGroup*>(new FakeGroup); },
    .advance =
        [](SluiceNcclGroup* group, char* why) {
          (void)fail_with(account_of(group), why);
          return account_of(group).state;
        },
    .reserve = [](SluiceNcclGroup* group, const SluiceNcclJob*,
                  char* why) { return fail_with(account_of(group), why); },
    .start = [](SluiceNcclGroup* group, const SluiceNcclJob*,
                char* why) { return fail_with(account_of(group), why); },
    .abort = [](SluiceNcclGroup* group) { ++account_of(group).aborts; },
    .end = [](SluiceNcclGroup* group) { account_of(group).state = sluice_nccl_ended; },
    .forget = [](SluiceNcclGroup* group) { delete &account_of(group); },
};

class DeviceGroupsTest : public ::testing::Test {
 protected:
  // The processes of a group are told apart by one number.
  static std::vector<ProcessId> processes(uint64_t number) { return {{}, {0, number}}; }
  // A group that its communicator `user` has begun.
  DeviceGroup& begin(uint64_t number, uint64_t user) {
    DeviceGroup& made = groups_.add(processes(number), 0);
    char id[sluice_nccl_id] = {};
    std::memcpy(id, &number, sizeof number);
    made.begin(fake_table, id, 0);
    made.set_last_user(user);
    return made;
  }
  void give_up_in_a_thread(const DeviceGroup& group, uint64_t user) {
    std::thread([&] { groups_.abandon(group.id(), user); }).join();
  }
  static bool is_aborted(DeviceGroup& group) { return !group.failure().ok(); }

  DeviceGroups groups_;
};

TEST_F(DeviceGroupsTest, HaveATokenForOneThread) {
  bool has_second = true;
  {
    const DeviceGroups::Token token = groups_.try_take();
    ASSERT_TRUE(token);
    std::thread([&] { has_second = static_cast<bool>(groups_.try_take()); }).join();
    EXPECT_FALSE(has_second);
  }
  std::thread([&] { has_second = static_cast<bool>(groups_.try_take()); }).join();
  EXPECT_TRUE(has_second);
}

// Other ranks may be in the job of another communicator, which this rank is done with.
TEST_F(DeviceGroupsTest, AreGivenUpByTheCommunicatorThatUsedThemLast) {
  DeviceGroup& group = begin(1, 11);
  group.set_last_user(22);
  groups_.abandon(group.id(), 11);
  EXPECT_FALSE(is_aborted(group));
  groups_.abandon(group.id() + 1, 22);
  EXPECT_FALSE(is_aborted(group)) << "another group";
  groups_.abandon(group.id(), 22);
  EXPECT_TRUE(is_aborted(group));
  DeviceGroup& other = begin(2, 11);
  groups_.abandon(other.id(), 0);
  EXPECT_TRUE(is_aborted(other)) << "whoever used it";
}

TEST_F(DeviceGroupsTest, AreGivenUpByTheThreadThatHasTheToken) {
  DeviceGroup& first = begin(1, 11);
  DeviceGroup& second = begin(2, 22);
  {
    const DeviceGroups::Token token = groups_.try_take();
    give_up_in_a_thread(first, 11);
    give_up_in_a_thread(second, 22);
    EXPECT_FALSE(is_aborted(first)) << "the token's holder may be using it";
    second.set_last_user(33);  // by a job of the holder's, which other ranks may be in
  }
  EXPECT_TRUE(is_aborted(first));
  EXPECT_FALSE(is_aborted(second));
  EXPECT_TRUE(groups_.try_take());
}

// Threads that give groups up while others take and leave the token: no wish is lost.
TEST_F(DeviceGroupsTest, LoseNoWish) {
  for (uint64_t round = 1; round <= 300; ++round) {
    DeviceGroup& group = begin(round, 11);
    std::thread holder([&] {
      for (int i = 0; i < 20; ++i) (void)groups_.try_take();
    });
    std::thread([&] { groups_.abandon(group.id(), 11); }).join();
    holder.join();
    ASSERT_TRUE(is_aborted(group));
  }
}

TEST(DeviceGroupTest, TellsLackOfMemoryFromAFailure) {
  DeviceGroup group({}, 0);
  const char id[sluice_nccl_id] = {};
  group.begin(fake_table, id, 0);
  EXPECT_EQ(group.reserve({}).code(), Code::memory);
  EXPECT_EQ(group.advance(), DeviceGroup::State::ready);
  EXPECT_FALSE(group.has_failed());
}

struct ResetTable : SluiceNccl {
  ResetTable() : SluiceNccl(fake_table) {
    reserve = [](SluiceNcclGroup* of, const SluiceNcclJob*, char* why) {
      account_of(of).state = sluice_nccl_failed;
      account_of(of).reason = "the program has reset the device";
      return fail_with(account_of(of), why);
    };
  }
};

TEST(DeviceGroupTest, FailsWhereReserveEndsIt) {
  const ResetTable table;
  DeviceGroup group({}, 0);
  const char id[sluice_nccl_id] = {};
  group.begin(table, id, 0);
  EXPECT_EQ(group.reserve({}).code(), Code::unavailable);
  EXPECT_TRUE(group.has_failed());
  EXPECT_EQ(group.why(), "the program has reset the device");
}

TEST(DeviceGroupTest, IsAbortedWithoutAFailureOfItsOwn) {
  DeviceGroup group({}, 0);
  const char id[sluice_nccl_id] = {};
  group.begin(fake_table, id, 0);
  group.abort();
  EXPECT_FALSE(group.failure().ok());
  EXPECT_FALSE(group.has_failed());
  EXPECT_EQ(group.why(), "");
}

}  // namespace
}  // namespace sluice
