// SPDX-License-Identifier: BSD-3-Clause
//
// The rails of a link to a process with two addresses, at one of which is another machine, which
// takes connections and says nothing. Rank 1 is that process, and rank 0 makes the rails.
#include <thread>

#include "tests/unit/transports/tcp_rig.h"

namespace sluice {
namespace {

class RailsPastADecoy : public testing::Test {
 protected:
  static constexpr size_t large = 100 * 1024;
  RailsPastADecoy() : ranks_(tcp(options()), 2) {}
  static TcpOptions options() {
    TcpOptions made;
    made.streams = 2;
    made.interfaces = "127.0.0.0/8";  // else it is not up to the test which address is first
    return made;
  }
  void open(bool decoy_first) {
    AddressBlob blob = address_of(ranks_.at(1));
    const AddressBlob::Entry decoy{loopback(), 8, decoy_.port}, real = blob.entries.front();
    blob.entries = decoy_first ? std::vector{decoy, real} : std::vector{real, decoy};
    auto opened =
        ranks_.at(0).open({Ranks::process(0), 1}, {Ranks::process(1), blob.encode(), "rank 1"});
    ASSERT_TRUE(opened.ok());
    channel_ = std::move(*opened);
  }
  bool exchange_once(size_t bytes) {
    Messages messages;
    const Tag tag{1, 0, 0, 0};
    add(messages, tag, bytes).fill().send(*channel_);
    add(messages, tag, bytes).fill().send(ranks_.channel(1, 0));
    add(messages, tag, bytes).receive(ranks_.channel(1, 0));
    add(messages, tag, bytes).receive(*channel_);
    return ranks_.drive(messages) && std::ranges::all_of(messages, [](auto& each) {
             return each->ok() && each->holds_pattern();
           });
  }
  void expect_rails() {
    const std::string wanted = "tcp*2";
    for (int i = 0; i < 2000; ++i) {
      if (wanted == channel_->carrier() && wanted == ranks_.channel(1, 0).carrier()) break;
      ASSERT_TRUE(exchange_once(large));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(channel_->carrier(), wanted);
    EXPECT_EQ(ranks_.channel(1, 0).carrier(), wanted);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(exchange_once(4 * large));
  }
  // How many have connected there since this was last asked.
  size_t misled() {
    size_t count = 0;
    while (true) {
      auto accepted = accept_from(decoy_.socket);
      EXPECT_TRUE(accepted.ok());
      if (!accepted.ok() || !*accepted) return count;
      silent_.push_back(std::move(*accepted));
      ++count;
    }
  }

  Ranks ranks_;
  const Listener decoy_ = std::move(*listen_on(loopback(), {}));
  std::vector<Socket> silent_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(RailsPastADecoy, GoToTheNextAddress) {
  open(true);
  ASSERT_TRUE(exchange_once(100));
  (void)misled();
  expect_rails();
  EXPECT_GE(misled(), 2U);
}

// All addresses would take its greetings, and the first is the right one.
TEST_F(RailsPastADecoy, StayWhileThePeerComputes) {
  open(false);
  ASSERT_TRUE(exchange_once(100));
  EXPECT_EQ(misled(), 0U);
  Messages messages;
  add(messages, {2, 0, 0, 0}, large).receive(*channel_);
  const size_t before = descriptors().size();
  for (int i = 0; i < 200; ++i) {  // twice as long as an address is waited for
    ranks_.at(0).progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(descriptors().size(), before + 2) << "it dials";
  EXPECT_EQ(misled(), 0U);
  add(messages, {2, 0, 0, 0}, large).fill().send(ranks_.channel(1, 0));
  ASSERT_TRUE(ranks_.drive(messages));
  for (auto& each : messages) EXPECT_TRUE(each->ok() && each->holds_pattern()) << each->why();
  expect_rails();
}

}  // namespace
}  // namespace sluice
