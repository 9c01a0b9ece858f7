// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the stand-in driver share: at the end of each nothing may be left.
#pragma once

#include "tests/cuda/driver_rig.h"

namespace standin {

inline void expect_nothing_left() {
  for (const char* name : {"contexts", "streams", "events", "pinned", "device_memory"}) {
    EXPECT_EQ(standin_counter(name), 0) << name;
  }
}

class StandIn : public AnyDriver {
 protected:
  void TearDown() override {
    AnyDriver::TearDown();
    expect_nothing_left();
  }
};

}  // namespace standin
