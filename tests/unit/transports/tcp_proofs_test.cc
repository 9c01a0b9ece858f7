// SPDX-License-Identifier: BSD-3-Clause
//
// Connections that begin with proofs: what lets a peer in, and what lets nobody in.
#include <array>
#include <cstring>

#include "tests/unit/transports/slow_filter.h"
#include "tests/unit/transports/tcp_proved.h"

namespace sluice {
namespace {

using std::chrono::seconds;

TcpOptions with_prover(std::chrono::milliseconds limit = seconds(20)) {
  TcpOptions options;
  options.prover = std::make_shared<PoorProver>();
  options.connect_timeout = limit;
  options.interfaces = "127.0.0.0/8";
  return options;
}

// A message from the peer is awaited.
class TcpProofs : public TcpProved {
 protected:
  explicit TcpProofs(std::chrono::milliseconds limit = seconds(20))
      : TcpProved(with_prover(limit)) {}
  void SetUp() override { message_.receive(*channel_); }
  // The last proof and the message come through.
  void expect_heard(Answered& asking) {
    prove(asking);
    Script().add(data(8)).say(asking.peer);
    ASSERT_TRUE(done_in(message_, seconds(5)));
    EXPECT_TRUE(message_.ok() && message_.holds_pattern()) << message_.why();
  }
  void expect_nothing_came() {
    EXPECT_FALSE(message_.done()) << message_.why();
    expect_welcome();
  }
  // Of a stranger that waits.
  static bool has_heard_nothing(const Stranger& stranger) {
    char byte;
    return recv(stranger.fd(), &byte, 1, MSG_DONTWAIT) == -1;
  }
  int& lacks() { return dynamic_cast<const PoorProver&>(*options_.prover).lacks; }

  Message message_{{1, 0, 0, 0}, 8};
};

TEST_F(TcpProofs, LetAPeerIn) {
  Answered asking = ask();
  const Greeting& answer = asking.answer;
  EXPECT_EQ(answer.from, Ranks::process(1));
  EXPECT_EQ(answer.to, Ranks::process(0));
  EXPECT_EQ(answer.key, *second_proof(*options_.prover, pair_key(), asking.words, answer));
  expect_heard(asking);
}

// Nobody can connect then.
TEST_F(TcpProofs, AreNotAwaitedOnceThisProcessCanMakeNone) {
  EXPECT_FALSE(done_in(message_, std::chrono::milliseconds(1)));
  dynamic_cast<const PoorProver&>(*options_.prover).closed = true;
  ASSERT_TRUE(done_in(message_, seconds(60)));
  EXPECT_EQ(message_.code(), Code::unavailable);
  EXPECT_NE(message_.why().find("the prover is closed"), std::string::npos) << message_.why();
}

TEST_F(TcpProofs, DifferInEverythingThatTheyCover) {
  const Prover& prover = *options_.prover;
  const Greeting ask = asked();
  Greeting answer = ask;
  std::swap(answer.from, answer.to);
  const PairKey key = pair_key();
  const Key last = *last_proof(prover, key, ask, answer);
  EXPECT_NE(last, *second_proof(prover, key, ask, answer));
  EXPECT_NE(last, *last_proof(prover, pair_key(Ranks::process(2)), ask, answer));
  EXPECT_NE(last, *last_proof(prover, key, answer, ask));
  EXPECT_NE(*first_proof(prover, key, ask), *first_proof(prover, key, answer));
  for (const int field : {0, 1, 2, 3, 4, 5}) {
    Greeting other = answer;
    if (field == 0) other.version += 1;
    if (field == 1) other.filters = !other.filters;
    if (field == 2) other.from.low += 1;
    if (field == 3) other.to.high += 1;
    if (field == 4) other.window += 1;
    if (field == 5) other.nonce[15] ^= std::byte{1};
    EXPECT_NE(last, *last_proof(prover, key, ask, other)) << field;
    EXPECT_NE(last, *last_proof(prover, key, other, answer)) << field;
  }
}

// Whoever has only the greeting may come first, and stay: the peer gets in all the same.
TEST_F(TcpProofs, ReplayedGreetingsDoNotKeepThePeerOut) {
  const Greeting words = asked();
  std::vector<Answered> replays;
  for (int i = 0; i < 10; ++i) replays.push_back(ask(words));
  expect_welcome();
}

// What is said in place of a peer's greeting and, unless that is null, of its last proof.
class TcpImpostors;
struct Impostor {
  const char* name;
  Greeting (*greets)(TcpImpostors&);
  Key (*proves)(TcpImpostors&, const Greeting& words, const Greeting& answer) = nullptr;
};

class TcpImpostors : public TcpProofs, public testing::WithParamInterface<Impostor> {
 public:
  using TcpProofs::ask, TcpProofs::asked, TcpProofs::greeting, TcpProofs::last;
  Greeting proved(Greeting words, const ProcessId& by) const {
    words.key = *first_proof(*options_.prover, pair_key(by), words);
    return words;
  }
  Key heard{};
};

using Test = TcpImpostors;
constexpr Impostor impostors[] = {
    {"AWrongLastProof", [](Test& test) { return test.asked(); },
     [](Test& test, const Greeting& words, const Greeting& answer) {
       Key wrong = test.last(words, answer);
       wrong[15] ^= std::byte{1};
       return wrong;
     }},
    // All that a peer has sent, from the first byte on; its last proof has never arrived.
    {"AReplay",
     [](Test& test) {
       const auto first = test.ask();
       test.heard = test.last(first.words, first.answer);
       return first.words;
     },
     [](Test& test, const Greeting&, const Greeting&) { return test.heard; }},
    {"TheAnswersProof", [](Test& test) { return test.asked(); },
     [](Test&, const Greeting&, const Greeting& answer) { return answer.key; }},
    {"TheAnswer", [](Test& test) { return test.ask().answer; }},
    {"TheAnswerTurned",
     [](Test& test) {
       Greeting answer = test.ask().answer;
       std::swap(answer.from, answer.to);
       return answer;
     }},
    {"AGreetingToAnother",
     [](Test& test) {
       Greeting words = test.asked();
       words.to.low += 5;
       return test.proved(words, words.from);
     }},
    {"AProofByAnother", [](Test& test) { return test.proved(test.asked(), Ranks::process(2)); }},
    {"AChangedGreeting",
     [](Test& test) {
       Greeting words = test.asked();
       words.window += 1;
       return words;
     }},
    // Whoever listens may have heard it: this process says it to peers that cannot prove.
    {"TheKeyAlone", [](Test& test) { return test.greeting(); }},
};

// No message that follows is read, and the peer gets in all the same.
TEST_P(TcpImpostors, AreTurnedAway) {
  const Greeting words = GetParam().greets(*this);
  Stranger stranger(blob_.entries.front());
  stranger.say(words);
  if (GetParam().proves != nullptr) {
    const auto answer = hear_answer(stranger);
    ASSERT_TRUE(answer);
    stranger.say(GetParam().proves(*this, words, *answer).data(), proof_bytes);
  }
  // After a greeting with a wrong proof nothing is said: the greeting alone must end it.
  const bool goes_on = GetParam().proves != nullptr || !words.proves;
  if (goes_on) Script().add(data(8)).say(stranger);
  EXPECT_TRUE(is_turned_away(stranger));
  expect_nothing_came();
}

INSTANTIATE_TEST_SUITE_P(By, TcpImpostors, testing::ValuesIn(impostors),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(TcpProofs, CutShortLetNobodyIn) {
  for (const size_t size : {1, 15, 16, 17, 71, 72, 73, 87}) {
    Stranger stranger(blob_.entries.front());
    stranger.say(asked(), size);
    progress_a_while();
  }
  for (const size_t size : {0, 1, 15}) {
    Answered asking = ask();
    if (size > 0) asking.peer.say(last(asking.words, asking.answer).data(), size);
    progress_a_while();
  }
  expect_nothing_came();
}

TEST_F(TcpProofs, OneByteAtATime) {
  const Greeting words = asked();
  Message message({1, 1, 0, 0}, 0);
  message.receive(*channel_);
  Stranger peer(blob_.entries.front());
  std::byte bytes[Greeting::bytes_with_proof];
  words.encode(bytes);
  for (const std::byte& each : bytes) {
    peer.say(&each, 1);
    endpoint_->progress();
  }
  const auto answer = hear_answer(peer);
  ASSERT_TRUE(answer);
  for (const std::byte& each : last(words, *answer)) {
    peer.say(&each, 1);
    endpoint_->progress();
  }
  Script().add(data(0, 1)).say(peer);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_TRUE(message.ok()) << message.why();
}

TEST_F(TcpProofs, OfPeersThatHaveNoneAreTurnedAway) {
  const Peer plain{{0x5150, 3}, AddressBlob{1, key_, {}}.encode(), "process 3"};
  auto channel = endpoint_->open(team_, plain);
  ASSERT_TRUE(channel.ok());
  Stranger stranger(blob_.entries.front());
  stranger.say(asked(plain.process));
  EXPECT_TRUE(is_turned_away(stranger));
}

// As a peer does whose team this process has not formed yet. Nothing is said to it meanwhile.
TEST_F(TcpProofs, WaitUntilThePeerIsKnown) {
  Peer other = peer();
  other.process.low -= 5;
  Stranger early(blob_.entries.front()), known_later(blob_.entries.front());
  early.say(asked(other.process));
  progress_a_while();
  EXPECT_TRUE(has_heard_nothing(early));
  EXPECT_FALSE(early.sent_away());
  auto met = endpoint_->expect({&other, 1});
  const auto answer = hear_answer(early);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->to, other.process);
  met.reset();
  known_later.say(asked(other.process));
  progress_a_while();
  EXPECT_TRUE(has_heard_nothing(known_later)) << "it was forgotten";
}

// The key alone lets nobody in who may turn out to be a peer that can prove.
TEST_F(TcpProofs, OfTheUnknownAreNotReplacedByTheKeyEither) {
  Peer other = peer(), plain = peer();
  other.process.low -= 5;
  plain.process.low -= 6;
  plain.address = AddressBlob{1, key_, {}}.encode();
  Greeting as_other = greeting(), as_plain = greeting();
  as_other.from = other.process;
  as_plain.from = plain.process;
  Stranger stranger(blob_.entries.front()), honest(blob_.entries.front());
  stranger.say(as_other);
  honest.say(as_plain);
  progress_a_while();
  EXPECT_TRUE(has_heard_nothing(honest));
  EXPECT_FALSE(stranger.sent_away());
  const std::array<Peer, 2> team{other, plain};
  const auto met = endpoint_->expect(team);
  EXPECT_TRUE(is_turned_away(stranger));
  EXPECT_FALSE(honest.sent_away());
}

// Whoever greets as nobody knows whom waits no longer than others.
TEST_F(TcpProofs, OfTheUnknownKeepNobodyOut) {
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (unsigned i = 0; i < 40; ++i) {
    Greeting words = asked();
    words.from.low -= 1 + i;
    strangers.push_back(std::make_unique<Stranger>(blob_.entries.front()));
    strangers.back()->say(words);
  }
  expect_welcome();
}

// A peer that does not know yet that its link has failed here.
TEST_F(TcpProofs, AfterAFailureAreAnsweredWithARefusal) {
  Stranger bad(blob_.entries.front());
  introduce(bad);
  const std::vector<std::byte> garbage(Frame::bytes, std::byte{0xFF});
  bad.say(garbage.data(), garbage.size());
  ASSERT_TRUE(done_in(message_, seconds(5)));
  Peer other = peer();
  other.process.low -= 5;
  const auto channel = endpoint_->open(team_, other);
  Message awaited({1, 1, 0, 0}, 8);
  awaited.receive(**channel);
  Stranger forged(blob_.entries.front());
  const Answered again = ask();
  EXPECT_TRUE(again.answer.refuses);
  EXPECT_EQ(again.answer.key,
            *second_proof(*options_.prover, pair_key(), again.words, again.answer));
  char byte;
  EXPECT_EQ(recv(again.peer.fd(), &byte, 1, 0), 0);
  Greeting changed = again.words;
  changed.nonce[3] ^= std::byte{1};
  forged.say(changed);
  EXPECT_TRUE(wait_for(
      *endpoint_, [&] { return forged.sent_away(); }, seconds(5)));
}

// It is no stranger, and the log does not say so.
TEST_F(TcpProofs, ThatNoMemoryIsLeftToCheckMayComeAgain) {
  const Greeting words = asked();
  lacks() = 1;
  testing::internal::CaptureStderr();
  Stranger peer(blob_.entries.front());
  peer.say(words);
  EXPECT_TRUE(is_turned_away(peer));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("the connection from 127.0.0.1 could not be examined for lack of memory"),
            std::string::npos)
      << said;
  expect_welcome();
}

class TcpSlowProofs : public TcpProofs {
 protected:
  TcpSlowProofs() : TcpProofs(std::chrono::milliseconds(300)) {}
};

TEST_F(TcpSlowProofs, HaveADeadline) {
  testing::internal::CaptureStderr();
  Answered asking = ask();
  EXPECT_TRUE(is_turned_away(asking.peer));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("the connection from 127.0.0.1 sent a "
                                                        "greeting, but no valid proof after it, "
                                                        "and was turned away; 1 so far"),
            std::string::npos);
}

// As a peer does that ended while it waited for the answer. It does not come again.
TEST_F(TcpSlowProofs, WhoLeavesBeforeTheLastIsNotAwaitedForEver) {
  (void)ask();
  ASSERT_TRUE(done_in(message_, seconds(30)));
  EXPECT_EQ(message_.code(), Code::peer_lost);
  EXPECT_NE(message_.why().find("ended before it had proved itself"), std::string::npos)
      << message_.why();
}

// The deadline begins with the answer: a busy process may answer late.
class TcpBusy : public TcpProofs {
 protected:
  TcpBusy() : TcpProofs(std::chrono::milliseconds(1500)) {}
};

TEST_F(TcpBusy, APeerThatWaitedLongIsLetIn) {
  const Greeting words = asked();
  Stranger peer(blob_.entries.front());
  peer.say(words);
  std::this_thread::sleep_for(std::chrono::milliseconds(1600));
  const auto answer = hear_answer(peer);
  ASSERT_TRUE(answer);
  Answered asking{words, std::move(peer), *answer};
  expect_heard(asking);
}

// This process connects; the test plays the process that accepts.
class TcpAsks : public TcpPlayedListener {
 protected:
  TcpAsks() : TcpPlayedListener(with_prover()) {}
  int& lacks() { return dynamic_cast<const PoorProver&>(*options_.prover).lacks; }
  // The first connection, made to send a message.
  Socket accept_first() {
    message_.fill().send(*channel_);
    return accept(&asked_);
  }

  Greeting asked_;
};

TEST_F(TcpAsks, AndProvesItselfBeforeItsFrames) {
  const Socket peer = accept_first();
  EXPECT_NE(asked_.key, key_);
  EXPECT_FALSE(message_.done());
  const Greeting answer = answer_to(asked_);
  say(peer, answer);
  ASSERT_TRUE(ends());
  Key proof;
  ASSERT_EQ(recv(peer.fd(), proof.data(), proof.size(), MSG_WAITALL), ssize_t{proof_bytes});
  EXPECT_EQ(proof, *last_proof(*options_.prover, pair_key(), asked_, answer));
}

// It is answered by a process without the key, or with the answer to another greeting.
TEST_F(TcpAsks, AndTellsAWrongAnswer) {
  const Socket peer = accept_first();
  Greeting other = asked_;
  other.nonce[0] ^= std::byte{1};
  say(peer, answer_to(other));
  expect_end(Code::peer_lost, "another process is there");
  char byte;
  EXPECT_LE(recv(peer.fd(), &byte, 1, 0), 0) << "no proof, no frame";
}

TEST_F(TcpAsks, NoMoreIfItIsRefused) {
  const Socket peer = accept_first();
  say(peer, answer_to(asked_, true));
  expect_end(Code::peer_lost, "it has given up its connection to this process");
}

// Memory runs out when it connects for a message, and again when it connects to say so.
TEST_F(TcpAsks, AgainUntilItsAbortIsTold) {
  lacks() = 4;
  message_.fill().send(*channel_);
  ASSERT_TRUE(message_.done());
  EXPECT_EQ(message_.code(), Code::memory) << message_.why();
  const std::string cause = "no memory on rank 0";
  channel_->abort(cause);
  EXPECT_LT(lacks(), 3);
  const Socket peer = accept(&asked_);
  EXPECT_EQ(lacks(), 0);
  say(peer, answer_to(asked_));
  std::vector<std::byte> told(proof_bytes + Frame::bytes + cause.size());
  ASSERT_TRUE(wait_for(
      *endpoint_,
      [&] {
        return recv(peer.fd(), told.data(), told.size(), MSG_PEEK | MSG_DONTWAIT) ==
               static_cast<ssize_t>(told.size());
      },
      seconds(5)));
  Frame frame;
  ASSERT_TRUE(frame.decode(told.data() + proof_bytes));
  EXPECT_EQ(frame.type, FrameType::abort);
  EXPECT_EQ(std::memcmp(told.data() + proof_bytes + Frame::bytes, cause.data(), cause.size()), 0);
  EXPECT_TRUE(channel_->abort_sent());
}

TEST_F(TcpAsks, IsNotRefusedByOthers) {
  const Socket peer = accept_first();
  Greeting answer = answer_to(asked_);
  answer.refuses = true;  // which the proof does not cover
  say(peer, answer);
  expect_end(Code::peer_lost, "another process is there");
}

// Whether it has been answered: the accepting side had waited for the proof too long when this
// process read the answer.
class TcpAsksAgain : public TcpAsks, public testing::WithParamInterface<bool> {};

TEST_P(TcpAsksAgain, IfItIsTurnedAway) {
  Socket tired = accept_first();
  if (GetParam()) say(tired, answer_to(asked_));
  Greeting second;
  tired.close();
  const Socket peer = accept(&second);
  say(peer, answer_to(second));
  EXPECT_TRUE(ends());
  EXPECT_TRUE(message_.ok()) << message_.why();
}

INSTANTIATE_TEST_SUITE_P(BeforeAndAfterTheAnswer, TcpAsksAgain, testing::Bool());

TEST_F(TcpAsks, UntilNobodyListens) {
  Socket peer = accept_first();
  listener_.socket.close();
  peer.close();
  EXPECT_TRUE(ends());
  EXPECT_EQ(message_.code(), Code::peer_lost);
}

}  // namespace
}  // namespace sluice
