// SPDX-License-Identifier: BSD-3-Clause
//
// Asynchronous events where there is no memory: they are taken where nobody could tell of that.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice::testing
