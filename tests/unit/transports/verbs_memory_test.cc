// SPDX-License-Identifier: BSD-3-Clause
//
// Asynchronous events where there is no memory: they are taken where nobody could tell of that. And
// which errors the limit of locked memory explains.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

#include "tests/unit/support/allocations.h"
#include "tests/unit/transports/fake_verbs.h"
#include "transports/verbs/device.h"

namespace sluice::testing {
namespace {

TEST(VerbsMemory, AFailedQueueIsNotedWithoutAny) {
  fake_verbs::reset({});
  const auto ports = survey_verbs(fake_verbs::table(), "");
  ASSERT_TRUE(ports.ok());
  const auto device = VerbsDevice::open(fake_verbs::table(), ports->at(0));
  ASSERT_TRUE(device.ok());
  (*device)->add(7);
  for (const uint32_t queue : {7U, 8U}) {
    fake_verbs::happen({SLUICE_VERBS_QUEUE_FAILED, 0, queue, "some text"});
  }
  {
    const RefusedAllocations none(0, 1000);
    (*device)->take_events();
  }
  EXPECT_FALSE((*device)->reports(7));
  EXPECT_EQ((*device)->problem(7), "the queue pair failed: some text");
  (*device)->remove(7);
  EXPECT_EQ((*device)->problem(7), "");
  EXPECT_EQ((*device)->problem(8), "") << "not of this process";
}

// The limit of this process, while this lives.
class LimitOfLockedMemory {
 public:
  explicit LimitOfLockedMemory(rlim_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_MEMLOCK, &before_), 0);
    const rlimit lower{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &lower), 0);
  }
  ~LimitOfLockedMemory() { setrlimit(RLIMIT_MEMLOCK, &before_); }

 private:
  rlimit before_{};
};

TEST(VerbsMemory, TheLimitExplainsWhatItMayHaveRefused) {
  {
    const LimitOfLockedMemory none(0);  // upon which the kernel says EPERM
    EXPECT_EQ(limit_of_locked_memory(EPERM),
              "; the limit of locked memory is 0 KB, raise it (ulimit -l)");
  }
  const LimitOfLockedMemory small(8 << 10);
  EXPECT_EQ(limit_of_locked_memory(ENOMEM),
            "; the limit of locked memory is 8 KB, raise it (ulimit -l)");
  EXPECT_EQ(limit_of_locked_memory(EPERM), "");
  EXPECT_EQ(limit_of_locked_memory(EINVAL), "");
}

}  // namespace
}  // namespace sluice::testing
