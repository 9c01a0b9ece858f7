// SPDX-License-Identifier: BSD-3-Clause
//
// A team's windows on a link.
#include "transports/link/window.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice {
namespace {

// Four sends that take a quarter of this window each with their headers, and one more.
constexpr size_t quarter = 100, window_bytes = 4 * (Frame::bytes + quarter);

class Windows : public testing::Test {
 protected:
  Windows() {
    for (uint32_t i = 0; i < sends_.size(); ++i) {
      sends_[i].tag = {7 + i / 3, i, 0, 0};
      sends_[i].bytes = quarter;
    }
  }
  // How many of the sends found room.
  size_t admit_all() {
    size_t admitted = 0;
    for (Operation& send : sends_) admitted += to_peer_.admit(&send) ? 1 : 0;
    return admitted;
  }

  std::array<Operation, 6> sends_{};
  SendWindow to_peer_{window_bytes};
  ReceiveWindow from_peer_{window_bytes};
};

TEST_F(Windows, SendsWithoutRoomWaitInOrder) {
  EXPECT_EQ(admit_all(), 4U);
  EXPECT_EQ(to_peer_.admit_next(), nullptr);
  to_peer_.credit(Frame::bytes + quarter);
  EXPECT_EQ(to_peer_.admit_next(), &sends_[4]);
  EXPECT_EQ(to_peer_.admit_next(), nullptr);
  to_peer_.credit(window_bytes);
  EXPECT_EQ(to_peer_.admit_next(), &sends_[5]);
  EXPECT_EQ(to_peer_.admit_next(), nullptr);
}

TEST_F(Windows, AReleasedSendTakesNoRoom) {
  EXPECT_EQ(admit_all(), 4U);
  EXPECT_EQ(to_peer_.release(sends_[5].tag), &sends_[5]);
  EXPECT_EQ(to_peer_.release(sends_[5].tag), nullptr);
  EXPECT_EQ(to_peer_.release(sends_[0].tag), nullptr);  // it did not wait
  to_peer_.credit(Frame::bytes + quarter);
  EXPECT_EQ(to_peer_.admit_next(), &sends_[4]);
}

TEST_F(Windows, GivingUpACallLeavesTheOthers) {
  sends_[4].tag.call = 6;
  EXPECT_EQ(admit_all(), 4U);
  EXPECT_EQ(to_peer_.withdraw(6), &sends_[4]);
  EXPECT_EQ(sends_[4].next, nullptr);
  EXPECT_EQ(to_peer_.withdraw(std::nullopt), &sends_[5]);
  EXPECT_EQ(to_peer_.withdraw(std::nullopt), nullptr);
}

TEST_F(Windows, CreditBeyondWhatIsUsedGivesNoRoom) {
  to_peer_.credit(10 * window_bytes);
  EXPECT_EQ(admit_all(), 4U);
}

TEST_F(Windows, APeerCannotSendAheadMoreThanTheWindow) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(from_peer_.set_aside(quarter));
  EXPECT_FALSE(from_peer_.set_aside(0));  // its header has no room
  from_peer_.take_back(quarter);
  EXPECT_TRUE(from_peer_.set_aside(quarter));
}

TEST_F(Windows, HalfAWindowOwedIsTold) {
  EXPECT_FALSE(from_peer_.owe(quarter));
  EXPECT_TRUE(from_peer_.owe(quarter));
  EXPECT_EQ(from_peer_.take_credit(), window_bytes / 2);
  EXPECT_EQ(from_peer_.take_credit(), 0U);
  from_peer_.return_credit(window_bytes / 2);  // its frame was given up
  EXPECT_TRUE(from_peer_.owe(0));
  EXPECT_EQ(from_peer_.take_credit(), window_bytes / 2 + Frame::bytes);
}

}  // namespace
}  // namespace sluice
