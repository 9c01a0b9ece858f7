// SPDX-License-Identifier: BSD-3-Clause
//
// Rails that end or break amid a message: what each side says of it.
#include <string>

#include "tests/unit/transports/rails_rig.h"

namespace sluice {
namespace {

class BusyRailsThatEnd : public RailsThatEnd {
 protected:
  BusyRailsThatEnd() : RailsThatEnd(with(streams, size_t{32} << 20, 16 * kib)) {}
  void begin() {
    add(messages_, tag(0), 900 * kib).fill().send(ranks_.channel(0, 1));
    ASSERT_FALSE(messages_[0]->done());
  }
  void post_receive() { add(messages_, tag(0), 900 * kib).receive(ranks_.channel(1, 0)); }
  // The ends of all rails on that side.
  std::vector<int> ends_of(size_t rank) {
    std::vector<int> ends;
    for (const int each : rails_) {
      const bool is_there =
          listens_at(ranks_.at(rank), each, false) || listens_at(ranks_.at(1 - rank), each, true);
      if (is_there) ends.push_back(each);
    }
    return ends;
  }
  static void reset(int rail) {
    sockaddr none{};
    none.sa_family = AF_UNSPEC;
    ASSERT_EQ(connect(rail, &none, sizeof(none)), 0);
  }
  // What that rank says if the other is not driven meanwhile.
  std::string expect_end(size_t rank) {
    Message& message = *messages_[rank];
    EXPECT_TRUE(wait_for(ranks_.at(rank), [&] { return message.done(); }));
    EXPECT_EQ(message.code(), Code::peer_lost);
    return message.why();
  }

  Messages messages_;
};

TEST_F(BusyRailsThatEnd, FailTheLink) {
  begin();
  for (const int each : rails_) cut(each);
  post_receive();
  ASSERT_TRUE(ranks_.drive(messages_));
  for (auto& message : messages_) {
    EXPECT_EQ(message->code(), Code::peer_lost);
    EXPECT_NE(message->why().find("rank "), std::string::npos) << message->why();
  }
}

// A reset does not show that the peer has ended; a FIN does.
class OneSideOfBusyRails : public BusyRailsThatEnd, public testing::WithParamInterface<size_t> {};

TEST_P(OneSideOfBusyRails, SaysThatTheyBroke) {
  const size_t rank = GetParam();
  begin();
  post_receive();
  for (const int each : ends_of(1 - rank)) reset(each);
  const std::string why = expect_end(rank);
  const std::string broke = "the connection to " + Ranks::label(1 - rank) +
                            " broke: a connection for large messages ended amid one: ";
  EXPECT_EQ(why.find(broke), 0U) << why;
}

TEST_F(BusyRailsThatEnd, AreSaidToHaveEnded) {
  begin();
  post_receive();
  for (const int each : ends_of(0)) ASSERT_EQ(shutdown(each, SHUT_WR), 0);
  const std::string why = expect_end(1);
  EXPECT_EQ(why.find("rank 0 is gone: a connection for large messages ended amid one"), 0U) << why;
}

INSTANTIATE_TEST_SUITE_P(Ranks, OneSideOfBusyRails, testing::Values(0, 1));

}  // namespace
}  // namespace sluice
