// SPDX-License-Identifier: BSD-3-Clause
//
// How rails are made with proofs. The test plays the peer, which asks.
#include "tests/unit/transports/tcp_proved.h"
#include "tests/unit/transports/tls_rig.h"

namespace sluice {
namespace {

class RailsProved : public TcpProved {
 protected:
  static constexpr size_t large_bytes = 100 * 1024;
  static TcpOptions proved() {
    TcpOptions options;
    options.streams = 2;
    if (describe_tls(tls_options().folder).ok()) options.prover = tls_prover();
    return options;
  }
  RailsProved() : TcpProved(proved()) {}
  void SetUp() override {
    if (!options_.prover) GTEST_SKIP() << "built without OpenSSL?";
  }
  Greeting rail(uint32_t number) {
    Greeting made = asked();
    made.rail = number;
    made.key = *first_proof(*options_.prover, pair_key(), made);
    return made;
  }
  bool is_open(const std::string& carrier) {
    return wait_for(
        *endpoint_, [&] { return carrier == channel_->carrier(); }, std::chrono::seconds(5));
  }
};

TEST_F(RailsProved, ARecordedGreetingGetsNobodyIn) {
  Stranger peer(blob_.entries.front()), one(blob_.entries.front());
  introduce(peer);
  Script().add(data(8, 9)).say(peer);
  Message message({1, 9, 0, 0}, 8), large({1, 0, 0, 0}, large_bytes);
  message.receive(*channel_);
  ASSERT_TRUE(done_in(message, std::chrono::seconds(5)));
  large.receive(*channel_);  // now it looks for rails
  const Greeting words = rail(1);
  one.say(words);
  const auto answer = hear_answer(one);
  ASSERT_TRUE(answer && answer->rail == 1);
  one.say(last(words, *answer).data(), proof_bytes);
  ASSERT_TRUE(is_open("tcp*1"));
  const Frame told = hear(peer);
  EXPECT_TRUE(told.type == FrameType::rail && told.number == 1);
  Stranger again(blob_.entries.front());
  again.say(words);
  const auto other = hear_answer(again);
  if (other) again.say(last(words, *answer).data(), proof_bytes);
  EXPECT_TRUE(is_turned_away(again));
  Greeting changed = rail(2);
  changed.rail = 3;  // its proof is of another
  Stranger third(blob_.entries.front());
  third.say(changed);
  EXPECT_TRUE(is_turned_away(third));
  EXPECT_STREQ(channel_->carrier(), "tcp*1");
}

// The asking side greets at several addresses, and takes what is answered first.
TEST_F(RailsProved, OneOfSeveralConnectionsIsTaken) {
  Stranger peer(blob_.entries.front()), one(blob_.entries.front()), other(blob_.entries.front());
  introduce(peer);
  Message large({1, 0, 0, 0}, large_bytes);
  large.receive(*channel_);  // now it looks for rails
  const Greeting words = rail(1);
  one.say(words);
  other.say(words);
  const auto first = hear_answer(one), second = hear_answer(other);
  ASSERT_TRUE(first && second);
  other.say(last(words, *second).data(), proof_bytes);
  ASSERT_TRUE(is_open("tcp*1"));
  one.say(last(words, *first).data(), proof_bytes);
  EXPECT_TRUE(is_turned_away(one));
  EXPECT_FALSE(other.sent_away());
  EXPECT_STREQ(channel_->carrier(), "tcp*1");
}

}  // namespace
}  // namespace sluice
