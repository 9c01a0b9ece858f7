// SPDX-License-Identifier: BSD-3-Clause
//
// Who may resume a connection that broke: the peer, once for each search. The test plays the peer,
// which is the asking side, and strangers that guess, or that have recorded what the peer said.
#include <vector>

#include "tests/unit/transports/slow_filter.h"
#include "tests/unit/transports/tcp_proved.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Where the peer listens; the endpoint's invitations are left there.
struct PeersListener {
  Listener listener = std::move(*listen_on(loopback(), {}));
};

// With proofs or without.
class TcpResuming : private PeersListener,
                    public TcpProved,
                    public testing::WithParamInterface<bool> {
 protected:
  static TcpOptions options() {
    TcpOptions made;
    made.interfaces = "127.0.0.0/8";
    if (GetParam()) made.prover = std::make_shared<PoorProver>();
    return made;
  }
  TcpResuming()
      : TcpProved(options(), {{loopback(), 8, listener.port}}),
        nobody_(std::move(*endpoint_->open({Ranks::process(0), 9},
                                           {{1, 1}, AddressBlob{1, {}, {}}.encode(), "nobody"}))) {
    never_.receive(*nobody_);  // so that the endpoint accepts connections at each turn
  }
  static bool proves() { return GetParam(); }

  Stranger visit() const { return Stranger(blob_.entries.front()); }
  void connect_first(Stranger& peer) {
    Message message({1, 0, 0, 0}, 8);
    message.receive(*channel_);
    if (proves()) {
      introduce(peer);
    } else {
      peer.say(greeting());
    }
    say_message(peer, 0);
    ASSERT_TRUE(done_in(message, seconds(5)));
    if (proves()) return;
    std::byte answer[Greeting::bytes];
    ASSERT_EQ(recv(peer.fd(), answer, sizeof(answer), MSG_WAITALL), ssize_t{Greeting::bytes});
  }
  void say_message(Stranger& peer, uint32_t ordinal) {
    Script().add(data(8, ordinal)).say(peer);
    counts_.sent += Frame::bytes + 8;
  }
  // The connection carries a message each way.
  void expect_alive(Stranger& peer) {
    const uint32_t ordinal = ++ordinal_;
    Message in({1, ordinal, 0, 0}, 8), out({2, ordinal, 0, 0}, 8);
    in.receive(*channel_);
    out.fill().send(*channel_);
    say_message(peer, ordinal);
    ASSERT_TRUE(done_in(in, seconds(5)));
    EXPECT_TRUE(in.ok() && in.holds_pattern()) << in.why();
    ASSERT_TRUE(out.done() && out.ok()) << out.why();
    while (hear_counted(peer).type != FrameType::data) {
    }
  }
  Frame hear_counted(Stranger& peer) {
    const Frame heard = hear(peer);
    counts_.received += Frame::bytes + heard.length;
    return heard;
  }
  // As if a firewall had sent a reset to both; what had come has been read.
  void break_off(Stranger& peer) {
    progress_a_while();
    pollfd ready{peer.fd(), POLLIN, 0};
    while (poll(&ready, 1, 0) > 0) hear_counted(peer);
    sockaddr none{};
    none.sa_family = AF_UNSPEC;
    ASSERT_EQ(connect(peer.fd(), &none, sizeof(none)), 0);
  }
  Greeting resuming(uint64_t search, const ByteCounts& counts) {
    Greeting made = greeting();
    made.resumes = true;
    made.search = search;
    made.counts = counts;
    if (!proves()) return made;
    made.proves = true;
    made.nonce[0] = static_cast<std::byte>(100 + search);
    made.key = *first_proof(*options_.prover, pair_key(), made);
    return made;
  }
  // What the endpoint answers; nullopt: it closes the connection, or says nothing for a while.
  std::optional<Greeting> hear_resumed(Stranger& peer) {
    std::byte bytes[Greeting::most_bytes];
    const size_t size = resuming(0, {}).size();
    size_t got = 0;
    wait_for(
        *endpoint_,
        [&] {
          const ssize_t some = recv(peer.fd(), bytes + got, size - got, MSG_DONTWAIT);
          got += some > 0 ? static_cast<size_t>(some) : 0;
          return some == 0 || got == size;
        },
        seconds(3));
    Greeting answer;
    if (got < size || !answer.decode(bytes)) return std::nullopt;
    EXPECT_FALSE(answer.refuses);
    return answer;
  }
  // All that the peer does to resume.
  void resume(Stranger& peer, const Greeting& words) {
    peer.say(words);
    const auto answer = hear_resumed(peer);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->search, words.search);
    EXPECT_EQ(answer->counts.sent, counts_.received);
    EXPECT_EQ(answer->counts.received, counts_.sent);
    const Key last = proves() ? this->last(words, *answer) : blob_.key;
    peer.say(last.data(), last.size());
  }
  // It does not get an answer, and the connection in place is as it was.
  void expect_turned_away(const Greeting& words, Stranger& in_place) {
    Stranger stranger = visit();
    stranger.say(words);
    EXPECT_TRUE(wait_for(
        *endpoint_, [&] { return stranger.sent_away(); }, seconds(5)));
    expect_alive(in_place);
  }

  ByteCounts counts_;  // of the peer

 private:
  uint32_t ordinal_ = 0;
  const std::unique_ptr<Channel> nobody_;
  Message never_{{2, 0, 0, 0}, 1};
};

TEST_P(TcpResuming, ThePeerGoesOnWhereItStopped) {
  Stranger first = visit();
  connect_first(first);
  for (uint64_t search = 1; search < 4; ++search) {
    break_off(first);
    Stranger next = visit();
    ASSERT_NO_FATAL_FAILURE(resume(next, resuming(search, counts_)));
    ASSERT_NO_FATAL_FAILURE(expect_alive(next));
    first = std::move(next);
  }
}

TEST_P(TcpResuming, ARecordedGreetingChangesNothing) {
  Stranger first = visit();
  connect_first(first);
  break_off(first);
  const Greeting recorded = resuming(1, counts_);
  Stranger next = visit();
  ASSERT_NO_FATAL_FAILURE(resume(next, recorded));
  ASSERT_NO_FATAL_FAILURE(expect_alive(next));
  expect_turned_away(recorded, next);
  expect_turned_away(resuming(0, counts_), next);

  // Nor while the link has no connection; and after that the peer gets its answer.
  break_off(next);
  Stranger replays = visit();
  replays.say(recorded);
  EXPECT_TRUE(wait_for(
      *endpoint_, [&] { return replays.sent_away(); }, seconds(5)));
  Stranger last = visit();
  ASSERT_NO_FATAL_FAILURE(resume(last, resuming(2, counts_)));
  expect_alive(last);
}

TEST_P(TcpResuming, WhoCannotProveItselfGetsNoAnswer) {
  Stranger first = visit();
  connect_first(first);
  Greeting wrong = resuming(1, counts_);
  wrong.key[3] ^= std::byte{1};
  Greeting other_kind = resuming(1, counts_);
  other_kind.proves = !proves();
  for (const Greeting& words : {wrong, other_kind}) expect_turned_away(words, first);
  break_off(first);
  for (const Greeting& words : {wrong, other_kind}) {
    Stranger stranger = visit();
    stranger.say(words);
    EXPECT_TRUE(wait_for(
        *endpoint_, [&] { return stranger.sent_away(); }, seconds(5)));
  }
  Stranger next = visit();
  ASSERT_NO_FATAL_FAILURE(resume(next, resuming(1, counts_)));
  expect_alive(next);
}

// It has the answer, but the last proof answers that of the peer alone. Without proofs it may have
// recorded the key, too.
TEST_P(TcpResuming, WhoHasRecordedAGreetingCannotConfirmIt) {
  Stranger first = visit();
  connect_first(first);
  break_off(first);
  const Greeting recorded = resuming(1, counts_);
  Stranger replays = visit(), next = visit();
  replays.say(recorded);
  ASSERT_TRUE(hear_resumed(replays));
  const Key guess{std::byte{7}};
  replays.say(guess.data(), guess.size());
  EXPECT_TRUE(wait_for(
      *endpoint_, [&] { return replays.sent_away(); }, seconds(5)));
  ASSERT_NO_FATAL_FAILURE(resume(next, resuming(2, counts_)));
  expect_alive(next);
}

// Whoever has recorded the key of a link without proofs, and guesses, ends no connection.
TEST_P(TcpResuming, AGuessOfCountsEndsNoConnection) {
  if (proves()) GTEST_SKIP() << "there the greeting is the peer's";
  Stranger first = visit();
  connect_first(first);
  ASSERT_NO_FATAL_FAILURE(expect_alive(first));
  const auto [sent, received] = counts_;
  for (const ByteCounts& guess : std::vector<ByteCounts>{
           {0, 0}, {sent + 1, received}, {sent, received - 1}, {sent - 56, received + 56}}) {
    Stranger stranger = visit();
    stranger.say(resuming(9, guess));
    progress_a_while();
    expect_alive(first);
    EXPECT_FALSE(stranger.sent_away()) << "waits";
  }
  break_off(first);
  progress_a_while();
  Stranger next = visit();
  ASSERT_NO_FATAL_FAILURE(resume(next, resuming(1, counts_)));
  expect_alive(next);
}

// The peer that says so with a proof has lost what was sent: both sides name it.
TEST_P(TcpResuming, CountsThatDifferAreNamed) {
  Stranger first = visit();
  connect_first(first);
  break_off(first);
  Message message({1, 99, 0, 0}, 8);
  message.receive(*channel_);
  Stranger next = visit();
  next.say(resuming(1, {counts_.sent + 40, counts_.received}));
  const auto answer = hear_resumed(next);
  ASSERT_TRUE(answer);
  const Key last = proves()
                       ? this->last(resuming(1, {counts_.sent + 40, counts_.received}), *answer)
                       : blob_.key;
  next.say(last.data(), last.size());
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_EQ(message.code(), Code::peer_lost);
  EXPECT_NE(message.why().find("40 bytes from it were lost"), std::string::npos) << message.why();
}

INSTANTIATE_TEST_SUITE_P(Proofs, TcpResuming, testing::Bool());

}  // namespace
}  // namespace sluice
