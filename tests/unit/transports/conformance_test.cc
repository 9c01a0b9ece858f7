// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the transport contract, over every transport and every mode of it, all ranks in one
// thread.
#include "tests/unit/transports/conformance.h"
#include "tests/unit/support/sweep.h"

namespace sluice::conformance {
namespace {

// Posts all operations in the given order, with progress between.
struct Posting {
  Message* message;
  Channel* channel;
  bool sends;
};
void post_all(Ranks& ranks, const std::vector<Posting>& postings, std::mt19937_64& random) {
  for (const Posting& each : postings) {
    each.sends ? each.message->send(*each.channel) : each.message->receive(*each.channel);
    if (random() % 4 == 0) ranks.progress();
  }
}

TEST_P(Conformance, AnyOrderOfPostingAndArrival) {
  Ranks ranks(make(), 3);
  Messages messages;
  std::vector<Posting> postings;
  for (uint32_t i = 0; i < 300; ++i) {
    const size_t from = random_() % 3;
    const size_t to = (from + 1 + random_() % 2) % 3;
    const uint32_t team = 1 + random_() % 3;
    const Tag tag{i % 5, i / 5, static_cast<uint32_t>(random_() % 2), 9};
    const size_t bytes = some_size();
    Message& send = add(messages, tag, bytes, random_() % 4).fill();
    Message& receive = add(messages, tag, bytes, random_() % 4);
    postings.push_back({&send, &ranks.channel(from, to, team), true});
    postings.push_back({&receive, &ranks.channel(to, from, team), false});
  }
  std::shuffle(postings.begin(), postings.end(), random_);
  post_all(ranks, postings, random_);
  ASSERT_TRUE(ranks.drive(messages)) << "seed " << seed_;
  for (auto& message : messages) {
    ASSERT_TRUE(message->ok()) << message->why() << ", seed " << seed_;
    ASSERT_TRUE(message->holds_pattern()) << "seed " << seed_;
  }
}

TEST_P(Conformance, TokensOfNoBytes) {
  Ranks ranks(make(), 2);
  Messages messages;
  for (uint32_t i = 0; i < 20; ++i) {
    add(messages, {1, i, 0, 0}, 0).send(ranks.channel(0, 1));
    ranks.progress();
    add(messages, {1, i, 0, 0}, 0).receive(ranks.channel(1, 0));
  }
  ASSERT_TRUE(ranks.drive(messages));
  for (auto& message : messages) EXPECT_TRUE(message->ok()) << message->why();
}

TEST_P(Conformance, TokensArriveOnlyWhenSent) {
  Ranks ranks(make(), 2);
  Message receive({1, 0, 0, 0}, 0);
  receive.receive(ranks.channel(1, 0));
  ranks.drive_a_while();
  EXPECT_FALSE(receive.done());
  Message send({1, 0, 0, 0}, 0);
  send.send(ranks.channel(0, 1));
  EXPECT_TRUE(ranks.drive([&] { return send.ok() && receive.ok(); }));
}

TEST_P(Conformance, ManyPieces) {
  Ranks ranks(make(), 2);
  Messages messages;
  for (uint32_t pieces : {1U, 2U, 7U, 100U, 3000U}) {
    const Tag tag{pieces, 0, 0, 0};
    add(messages, tag, 50000, pieces).fill().send(ranks.channel(0, 1));
    add(messages, tag, 50000, 3001 - pieces).receive(ranks.channel(1, 0));
  }
  ASSERT_TRUE(ranks.drive(messages));
  for (auto& message : messages) EXPECT_TRUE(message->ok() && message->holds_pattern());
}

TEST_P(Conformance, ShortLivedTeams) {
  Ranks ranks(make(), 2);
  for (uint32_t team = 1; team <= 300; ++team) {
    Messages messages;
    add(messages, {1, 0, 0, 0}, 8).fill().send(ranks.channel(0, 1, team));
    add(messages, {1, 0, 0, 0}, 8).fill().send(ranks.channel(1, 0, team));
    add(messages, {1, 0, 0, 0}, 8).receive(ranks.channel(1, 0, team));
    add(messages, {1, 0, 0, 0}, 8).receive(ranks.channel(0, 1, team));
    ASSERT_TRUE(ranks.drive(messages)) << team;
    for (auto& message : messages) ASSERT_TRUE(message->ok() && message->holds_pattern());
    ranks.close(0, 1, team);
    ranks.close(1, 0, team);
  }
}

TEST_P(Conformance, ATeamThatThePeerDoesNotKnowYet) {
  Ranks ranks(make(), 2);
  Messages messages;
  add(messages, {1, 0, 0, 0}, 8).fill().send(ranks.channel(0, 1, 1));
  add(messages, {1, 0, 0, 0}, 8).fill().send(ranks.channel(0, 1, 2));
  // The message of team 2 lies behind one of team 1, which the peer has not opened.
  Message& receive = add(messages, {1, 0, 0, 0}, 8);
  receive.receive(ranks.channel(1, 0, 2));
  ASSERT_TRUE(ranks.drive([&] { return receive.done(); }));
  add(messages, {1, 0, 0, 0}, 8).receive(ranks.channel(1, 0, 1));
  ASSERT_TRUE(ranks.drive(messages));
  for (auto& message : messages) EXPECT_TRUE(message->ok() && message->holds_pattern());
}

TEST_P(Conformance, BothSendFirst) {
  Ranks ranks(make(), 2);
  Messages messages;
  const uint32_t count = 100;
  for (uint32_t i = 0; i < count; ++i) {
    add(messages, {1, i, 0, 0}, max_message).fill().send(ranks.channel(0, 1));
    add(messages, {1, i, 0, 0}, max_message).fill().send(ranks.channel(1, 0));
  }
  ranks.drive_a_while();
  for (uint32_t i = count; i-- > 0;) {  // the worst order: the first sent is received last
    add(messages, {1, i, 0, 0}, max_message).receive(ranks.channel(1, 0));
    add(messages, {1, i, 0, 0}, max_message).receive(ranks.channel(0, 1));
  }
  ASSERT_TRUE(ranks.drive(messages));
  for (auto& message : messages) ASSERT_TRUE(message->ok() && message->holds_pattern());
}

// A window full of unexpected messages must not stop other teams, nor messages with a posted
// receive.
TEST_P(Conformance, WhatIsPostedOnBothSidesPassesAFullWindow) {
  Ranks ranks(make(), 2);
  Messages unwanted, wanted;
  const size_t bytes = 8 * kib;
  for (uint32_t i = 0; i < 64; ++i) add(unwanted, {2, i, 0, 0}, bytes).send(ranks.channel(0, 1));
  for (const uint32_t team : {1U, 2U}) {
    add(wanted, {1, 0, 0, 0}, max_message).fill().send(ranks.channel(0, 1, team));
    add(wanted, {1, 0, 0, 0}, max_message).receive(ranks.channel(1, 0, team));
  }
  ASSERT_TRUE(ranks.drive(wanted));
  for (auto& message : wanted) EXPECT_TRUE(message->ok() && message->holds_pattern());
  const size_t sent = std::count_if(unwanted.begin(), unwanted.end(),
                                    [](auto& message) { return message->done(); });
  EXPECT_LE(sent * bytes, GetParam().window);
}

TEST_P(Conformance, TheWindowOpensAgain) {
  Ranks ranks(make(), 2);
  for (uint32_t round = 0; round < sweep(20U, 10U, 5U); ++round) {
    Messages messages;
    for (uint32_t i = 0; i < 40; ++i) {
      add(messages, {round, i, 0, 0}, 10 * kib).fill().send(ranks.channel(0, 1));
    }
    for (uint32_t i = 0; i < 40; ++i) {
      add(messages, {round, i, 0, 0}, 10 * kib).receive(ranks.channel(1, 0));
    }
    ASSERT_TRUE(ranks.drive(messages)) << round;
    for (auto& message : messages) ASSERT_TRUE(message->ok() && message->holds_pattern());
  }
}

TEST_P(Conformance, AnotherLengthIsNamed) {
  for (const bool receive_first : {true, false}) {
    Ranks ranks(make(), 2);
    Message send({4, 2, 1, 7}, 800), receive({4, 2, 1, 7}, 400);
    if (receive_first) receive.receive(ranks.channel(1, 0));
    send.send(ranks.channel(0, 1));
    ranks.drive_a_while();
    if (!receive_first) receive.receive(ranks.channel(1, 0));
    ASSERT_TRUE(ranks.drive([&] { return receive.done() && send.done(); }));
    EXPECT_EQ(receive.code(), Code::mismatch);
    EXPECT_EQ(receive.operation.seen_bytes, 800U);
    EXPECT_NE(receive.why().find("800"), std::string::npos) << receive.why();
    EXPECT_NE(receive.why().find("400"), std::string::npos) << receive.why();
    EXPECT_NE(receive.why().find("rank 0"), std::string::npos) << receive.why();
  }
}

// The same length, but of a longer message, or of another call.
TEST_P(Conformance, AnotherSizeIsNamed) {
  for (const uint64_t bit : {uint64_t{0}, Tag::of_message}) {
    for (const bool receive_first : {true, false}) {
      Ranks ranks(make(), 2);
      Message send({4, 2, 1, 7, bit | 9000}, 400), receive({4, 2, 1, 7, bit | 400}, 400);
      if (receive_first) receive.receive(ranks.channel(1, 0));
      send.send(ranks.channel(0, 1));
      ranks.drive_a_while();
      if (!receive_first) receive.receive(ranks.channel(1, 0));
      ASSERT_TRUE(ranks.drive([&] { return receive.done(); }));
      EXPECT_EQ(receive.code(), Code::mismatch);
      EXPECT_EQ(receive.operation.seen_size, bit | 9000);
    }
  }
}

// Two messages of a call may have other sizes, but a call has one.
TEST_P(Conformance, SizesOfMessagesMayDiffer) {
  Ranks ranks(make(), 2);
  Messages messages;
  for (const uint64_t bytes : {400U, 900U}) {
    const Tag tag{4, static_cast<uint32_t>(bytes), 0, 7, Tag::of_message | bytes};
    add(messages, tag, bytes).fill().send(ranks.channel(0, 1));
    add(messages, tag, bytes).receive(ranks.channel(1, 0));
  }
  ASSERT_TRUE(ranks.drive(messages));
  for (auto& message : messages) EXPECT_TRUE(message->ok());
  Message send({5, 0, 0, 7, 400}, 400), receive({5, 1, 0, 7, 900}, 400);
  send.send(ranks.channel(0, 1));
  receive.receive(ranks.channel(1, 0));
  ASSERT_TRUE(ranks.drive([&] { return receive.done(); }));
  EXPECT_EQ(receive.code(), Code::mismatch);
  EXPECT_EQ(receive.operation.seen_size, 400U);
}

// Detected from the call alone: the tags of two collectives' messages may differ otherwise.
TEST_P(Conformance, AnotherOperationIsNamed) {
  for (const uint32_t ordinal : {0U, 5U}) {
    for (const bool receive_first : {true, false}) {
      Ranks ranks(make(), 2);
      Message send({4, ordinal, 0, 31}, 8), receive({4, 0, 0, 77}, 8), behind({3, 0, 0, 1}, 8);
      Message after({3, 0, 0, 1}, 8);
      if (receive_first) receive.receive(ranks.channel(1, 0));
      send.send(ranks.channel(0, 1));
      after.fill().send(ranks.channel(0, 1));
      behind.receive(ranks.channel(1, 0));  // so that the link is read
      if (!receive_first) {
        ranks.drive_a_while();
        receive.receive(ranks.channel(1, 0));
      }
      ASSERT_TRUE(ranks.drive([&] { return receive.done(); }));
      EXPECT_EQ(receive.code(), Code::mismatch);
      EXPECT_EQ(receive.operation.seen_signature, 31U);
      EXPECT_NE(receive.why().find("31"), std::string::npos) << receive.why();
      EXPECT_NE(receive.why().find("77"), std::string::npos) << receive.why();
      EXPECT_TRUE(ranks.drive([&] { return behind.ok(); })) << "other calls go on";
    }
  }
}

TEST_P(Conformance, AbortReachesPendingAndLaterOperations) {
  Ranks ranks(make(), 2);
  Message receive({1, 0, 0, 0}, 8), later({1, 1, 0, 0}, 8), other({1, 0, 0, 0}, 8);
  Message send({1, 0, 0, 0}, 8);
  receive.receive(ranks.channel(1, 0));
  other.receive(ranks.channel(1, 0, 2));
  ranks.drive_a_while();
  ranks.channel(0, 1).abort("disk on fire");
  ASSERT_TRUE(ranks.drive([&] { return receive.done(); }));
  EXPECT_EQ(receive.code(), Code::aborted);
  EXPECT_NE(receive.why().find("disk on fire"), std::string::npos);
  later.send(ranks.channel(1, 0));
  ASSERT_TRUE(ranks.drive([&] { return later.done(); }));
  EXPECT_EQ(later.code(), Code::aborted);
  EXPECT_FALSE(other.done()) << "another team's";
  send.send(ranks.channel(0, 1, 2));
  EXPECT_TRUE(ranks.drive([&] { return other.ok(); }));
}

TEST_P(Conformance, AnAbortIsToldToWhoAsksThoughNothingIsPending) {
  Ranks ranks(make(), 2);
  Message send({1, 0, 0, 0}, 8), receive({1, 0, 0, 0}, 8), ahead({2, 0, 0, 0}, 500),
      other({2, 0, 0, 0}, 500);
  Channel& channel = ranks.channel(1, 0);
  receive.receive(channel);
  send.send(ranks.channel(0, 1));
  ASSERT_TRUE(ranks.drive([&] { return send.done() && receive.done(); }));
  EXPECT_TRUE(channel.aborted_by_peer().ok());
  ahead.fill().send(ranks.channel(0, 1, 2));
  ranks.channel(0, 1).abort("disk on fire");
  Status told;
  ASSERT_TRUE(ranks.drive([&] { return !(told = channel.aborted_by_peer()).ok(); }));
  EXPECT_EQ(told.code(), Code::aborted);
  EXPECT_NE(told.message().find("disk on fire"), std::string::npos);
  EXPECT_TRUE(ranks.channel(1, 0, 2).aborted_by_peer().ok()) << "another team's";
  other.receive(ranks.channel(1, 0, 2));
  EXPECT_TRUE(ranks.drive([&] { return other.done(); }));
  EXPECT_TRUE(other.ok() && other.holds_pattern());
}

TEST_P(Conformance, AbortOfATeamNotOpenedYet) {
  Ranks ranks(make(), 2);
  Message first({1, 0, 0, 0}, 8), second({1, 0, 0, 0}, 8), late({1, 0, 0, 0}, 8);
  ranks.channel(0, 1, 1).abort("no memory");
  first.fill().send(ranks.channel(0, 1, 2));
  second.receive(ranks.channel(1, 0, 2));
  ASSERT_TRUE(ranks.drive([&] { return second.ok(); }));
  late.receive(ranks.channel(1, 0, 1));
  ASSERT_TRUE(ranks.drive([&] { return late.done(); }));
  EXPECT_EQ(late.code(), Code::aborted);
}

// Whichever side connects.
TEST_P(Conformance, AbortBeforeThereIsAConnection) {
  for (const size_t from : {size_t{0}, size_t{1}}) {
    Ranks ranks(make(), 2);
    Channel& channel = ranks.channel(from, 1 - from);
    channel.abort("disk on fire");
    ranks.drive_a_while();
    Message receive({1, 0, 0, 0}, 8);
    receive.receive(ranks.channel(1 - from, from));
    ASSERT_TRUE(ranks.drive([&] { return receive.done() && channel.abort_sent(); }));
    EXPECT_EQ(receive.code(), Code::aborted);
    EXPECT_NE(receive.why().find("disk on fire"), std::string::npos) << receive.why();
  }
}

TEST_P(Conformance, AFinishedPeerIsNamedWhereItWasExpected) {
  Ranks ranks(make(), 2);
  Message sent({1, 0, 0, 0}, 8), receive({1, 0, 0, 0}, 8), pending({1, 1, 0, 0}, 8);
  Message later({1, 2, 0, 0}, 8), send({1, 0, 0, 0}, 8);
  receive.receive(ranks.channel(1, 0));
  pending.receive(ranks.channel(1, 0));
  sent.fill().send(ranks.channel(0, 1));
  ASSERT_TRUE(ranks.drive([&] { return sent.done(); }));
  ranks.leave(0);
  ASSERT_TRUE(ranks.drive([&] { return receive.done() && pending.done(); }));
  EXPECT_TRUE(receive.ok() && receive.holds_pattern()) << "what it had sent";
  EXPECT_EQ(pending.code(), Code::peer_lost);
  EXPECT_NE(pending.why().find("rank 0 finished"), std::string::npos) << pending.why();
  later.receive(ranks.channel(1, 0));
  send.send(ranks.channel(1, 0));
  ASSERT_TRUE(ranks.drive([&] { return later.done() && send.done(); }));
  EXPECT_EQ(later.code(), Code::peer_lost);
  EXPECT_EQ(send.code(), Code::peer_lost);
}

TEST_P(Conformance, WhatAFinishedPeerSentCanStillBeRead) {
  if (GetParam().window < 8 * kib) GTEST_SKIP() << "without a window nothing is sent ahead";
  Ranks ranks(make(), 2);
  Messages messages;
  Message opening({0, 0, 0, 0}, 0), opened({0, 0, 0, 0}, 0);
  opening.send(ranks.channel(1, 0));
  opened.receive(ranks.channel(0, 1));
  ASSERT_TRUE(ranks.drive([&] { return opening.done() && opened.done(); }));
  constexpr size_t bytes =
      200;  // so few that the smallest socket buffers hold all while nobody reads
  for (uint32_t i = 0; i < 4; ++i) {
    add(messages, {1, i, 0, 0}, bytes).fill().send(ranks.channel(0, 1));
  }
  ASSERT_TRUE(ranks.drive(messages));
  ranks.leave(0);
  for (uint32_t i = 4; i-- > 0;) add(messages, {1, i, 0, 0}, bytes).receive(ranks.channel(1, 0));
  ASSERT_TRUE(ranks.drive(messages));
  for (auto& message : messages) EXPECT_TRUE(message->ok() && message->holds_pattern());
}

TEST_P(Conformance, WithdrawLeavesTheLinkGood) {
  Ranks ranks(make(), 2);
  {
    Messages messages;
    for (uint32_t i = 0; i < 100; ++i) {
      add(messages, {1, i, 0, 0}, max_message).send(ranks.channel(0, 1, 1));
    }
    for (uint32_t i = 0; i < 10; ++i) {
      add(messages, {1, i, 0, 0}, max_message).receive(ranks.channel(1, 0, 1));
      ranks.progress();
    }
    ranks.channel(0, 1, 1).withdraw();
    ranks.channel(1, 0, 1).withdraw();
    ranks.drive_a_while();
  }
  Messages messages;
  for (uint32_t i = 0; i < 10; ++i) {
    add(messages, {1, i, 0, 0}, max_message).fill().send(ranks.channel(0, 1, 2));
    add(messages, {1, i, 0, 0}, max_message).receive(ranks.channel(1, 0, 2));
  }
  ASSERT_TRUE(ranks.drive(messages));
  for (auto& message : messages) EXPECT_TRUE(message->ok() && message->holds_pattern());
}

TEST_P(Conformance, AnAddressOfSomethingElseIsRefused) {
  Ranks ranks(make(), 2);
  Peer peer = ranks.peer(1);
  EXPECT_LE(peer.address.size(), 186U);
  peer.address.resize(peer.address.size() - 1);
  EXPECT_EQ(ranks.at(0).open({Ranks::process(0), 1}, peer).status().code(), Code::invalid);
  EXPECT_EQ(ranks.at(0).open({Ranks::process(0), 2}, ranks.peer(0)).status().code(), Code::invalid);
}

INSTANTIATE_TEST_SUITE_P(Transports, Conformance, testing::ValuesIn(possible_modes()), name_of);

}  // namespace
}  // namespace sluice::conformance
