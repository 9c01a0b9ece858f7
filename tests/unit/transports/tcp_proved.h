// SPDX-License-Identifier: BSD-3-Clause
//
// An endpoint and its simulated peer, the process with the lower id, whose greetings have proofs.
#pragma once

#include <optional>

#include "tests/unit/transports/tcp_played.h"
#include "transports/tcp/proofs.h"

namespace sluice {

class TcpProved : public TcpPlayed {
 protected:
  explicit TcpProved(const TcpOptions& options, std::vector<AddressBlob::Entry> entries = {})
      : TcpPlayed(options, std::move(entries)) {}

  // The key of the endpoint and a process, which has the same key pair.
  PairKey pair_key(const ProcessId& process = Ranks::process(0)) const {
    return *options_.prover->agree(process, Ranks::process(1), blob_.public_key);
  }
  // The peer's greeting, or another process's. Each has another nonce.
  Greeting asked(const ProcessId& process = Ranks::process(0)) {
    Greeting made = greeting();
    made.from = process;
    made.proves = true;
    made.filters = options_.filter != nullptr;
    made.nonce[0] = static_cast<std::byte>(++nonces_);
    made.key = *first_proof(*options_.prover, pair_key(process), made);
    return made;
  }
  // The endpoint's answer, if it is one byte for byte.
  std::optional<Greeting> hear_answer(Stranger& peer) {
    std::byte bytes[Greeting::bytes_with_proof];
    size_t got = 0;
    wait_for(
        *endpoint_,
        [&] {
          const ssize_t some = recv(peer.fd(), bytes + got, sizeof(bytes) - got, MSG_DONTWAIT);
          if (some == 0) return true;
          got += some > 0 ? static_cast<size_t>(some) : 0;
          return got == sizeof(bytes);
        },
        std::chrono::seconds(5));
    Greeting answer;
    if (got < sizeof(bytes) || !answer.decode(bytes)) return std::nullopt;
    return answer;
  }
  Key last(const Greeting& asked, const Greeting& answer) const {
    return *last_proof(*options_.prover, pair_key(), asked, answer);
  }
  // A connection that has said `words`, and been answered.
  struct Answered {
    Greeting words;
    Stranger peer;
    Greeting answer;
  };
  Answered ask(const Greeting& words) {
    Answered made{words, Stranger(blob_.entries.front()), {}};
    made.peer.say(words);
    const auto answer = hear_answer(made.peer);
    EXPECT_TRUE(answer);
    if (answer) made.answer = *answer;
    return made;
  }
  Answered ask() { return ask(asked()); }
  void prove(Answered& asking) {
    asking.peer.say(last(asking.words, asking.answer).data(), proof_bytes);
  }
  // All that a peer does before its frames.
  void introduce(Stranger& peer) {
    const Greeting words = asked();
    peer.say(words);
    const auto answer = hear_answer(peer);
    ASSERT_TRUE(answer);
    peer.say(last(words, *answer).data(), proof_bytes);
  }
  // A peer gets in, and is heard.
  void expect_welcome() {
    Message message({1, 9, 0, 0}, 8);
    message.receive(*channel_);
    Stranger peer(blob_.entries.front());
    introduce(peer);
    Script().add(data(8, 9)).say(peer);
    ASSERT_TRUE(done_in(message, std::chrono::seconds(5)));
    EXPECT_TRUE(message.ok() && message.holds_pattern()) << message.why();
  }
  // Whether the endpoint closes this connection, without a further byte, while it waits for the
  // peer.
  bool is_turned_away(Stranger& stranger) {
    Message message({1, 8, 0, 0}, 8);
    message.receive(*channel_);
    const bool away = wait_for(
        *endpoint_, [&] { return stranger.sent_away(); }, std::chrono::seconds(5));
    EXPECT_FALSE(message.done()) << message.why();
    return away;
  }

 private:
  unsigned nonces_ = 0;
};

}  // namespace sluice
