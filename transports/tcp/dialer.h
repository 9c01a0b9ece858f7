// SPDX-License-Identifier: BSD-3-Clause
//
// Connects to a process without blocking. It tries the peer's addresses in order, each beside those
// before it ("Happy Eyeballs", RFC 8305), and keeps the first connection with a proper answer.
//
//   the next address is tried      when one has failed or has not connected for 1/4 s; 1 s after
//                                  the greeting went to an address that is certain to be the peer's
//   another socket to an address   after each 1/2 s without an answer of the host. Its kernel is
//                                  asked only after 1, 3, 7 and 15 s, and a network may be back
//   all addresses have failed      again each second until the deadline, unless all lead to this
//                                  host; to resume a link, until the link ends it (link/search.h)
//   the host has not acknowledged  the attempt fails at the deadline; one that started late has 1/4
//   the greeting                   s. If it has acknowledged, the peer may be busy for any time
//   a certain address closes       tried again until the deadline's time has passed since it first
//                                  closed: perhaps strangers filled the peer's acceptor
//
// Until the answer shows the peer's key or proof this side sends only its greeting, because another
// process may be at that address; then it sends its last proof, if one is due (greeting.h). An
// asking side also takes connections with invitations (adopt); an answering side only sends its
// invitation (meeting.h).
#pragma once

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/tcp/address.h"
#include "transports/tcp/context.h"
#include "transports/tcp/dialing.h"
#include "transports/tcp/greeting.h"
#include "transports/tcp/socket.h"

namespace sluice {

// What a user may do about an errno value of socket(2) or connect(2); empty if that is not known.
const char* hint_of(int error);

class Dialer {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State { dialing, connected, failed };

  // greeting: with proofs or the key; or an invitation. pair_key: for proofs.
  Dialer(const TcpContext& context, std::span<const Candidate> candidates, const Greeting& greeting,
         const PairKey& pair_key);

  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;
  ~Dialer() { drop_all(); }

  // Greets on this connection too, over which the other side has invited.
  void adopt(Socket socket);

  // Goes on as far as possible now.
  State advance();

  // For a rail: its peer is in a call, as far as is known, and so about to take connections. The
  // next address is not tried before it has been for a second: rails to a peer that computes are to
  // stay on the networks that they were meant for.
  void note_heard() { heard_ = std::min(heard_, Clock::now()); }
  // While dialing: adds the sockets to poll.
  void add_to(std::vector<pollfd>& polls) const;
  // Once connected; to be called once.
  Socket take_socket() { return std::move(connected_); }
  // Once connected: the peer's greeting, if the dialer waited for it. It has sent this side's then.
  // (Nothing answers an invitation at once, which has been sent.)
  const std::optional<Greeting>& answer() const { return answer_; }
  const Greeting& words() const { return greeting_; }
  // Once failed: each address and its error; what the user may do, after a semicolon each; and the
  // kind: Code::peer_lost if at every address nobody or another process was listening, or if it
  // resumes, and nobody at the one that carried the connection which broke;
  // Code::timeout if a deadline passed, else Code::unavailable.
  std::string failures() const;
  std::string hints() const;
  Code code() const;
  // While dialing: failures() and hints() of the latest round, if nobody, or another process, was
  // listening at any address; else empty.
  const std::string& absence() const { return absence_; }
  // Once failed: an address could not be tried for lack of descriptors or memory.
  bool ran_short() const;
  // While dialing: an address that has answered as the peer before (Candidate::answered) has held
  // this side's greeting for so long, and acknowledged it.
  bool is_held(std::chrono::milliseconds time) const;
  // True if the peer has said that it accepts no connection of this process any more.
  bool refused() const { return refused_; }

 private:
  using Event = Dialing::Event;
  using Action = Dialing::Action;
  struct Target {
    Candidate candidate;
    Clock::time_point closed{};  // when it first closed without an answer; zero: it has not
  };
  struct Attempt {
    Candidate candidate;
    Clock::time_point closed;  // Target::closed
    Socket socket;
    Clock::time_point until;  // deadline for connecting, and for the greeting's acknowledgement
    bool adopted = false;     // made by the other side
    Socket fresh{};           // the second one, while connecting
    Clock::time_point renews_at = Clock::time_point::max();  // fresh is to be another one
    Dialing::State state = Dialing::State::connecting;
    bool asks() const { return state != Dialing::State::connecting; }
    Clock::time_point asks_since{};
    int error = 0;   // an errno value, once it failed; 0: something else was wrong
    size_t got = 0;  // bytes of the answer so far
    std::array<std::byte, Greeting::most_bytes> bytes{};
    Event fails(int why);  // with that errno value
  };

  struct Failure {
    std::string text;
    int error = 0;  // an errno value; 0: something else was wrong
  };

  void drop_all();
  bool begin_round();
  bool is_under_way(const Candidate& candidate) const;
  void start_next();
  std::optional<IpAddress> source_for(const Candidate& candidate) const;
  Result<Socket> make_socket_for(const Candidate& candidate) const;
  int begin_to_connect(const Socket& socket, const Candidate& candidate) const;
  Action advance_attempt(Attempt& attempt);
  Event connect_further(Attempt& attempt) const;
  void renew(Attempt& attempt) const;
  Event greet(Attempt& attempt) const;
  Event hear(Attempt& attempt);
  Event wait_further(const Attempt& attempt) const;
  Event poll_attempt(Attempt& attempt) const;
  Event confirm(Attempt& attempt) const;
  bool awaits_certain() const;
  bool may_retry(Attempt& attempt);
  bool is_spurned(const Attempt& attempt) const;
  void note_end(const Attempt& attempt, bool absent, const char* why);

  const TcpContext& context_;
  std::vector<Target> targets_;
  const Greeting greeting_;
  const PairKey pair_key_;
  const Clock::time_point deadline_;
  const Clock::duration between_starts_;
  const size_t addresses_;        // targets_ at first; then those that are tried again
  size_t next_ = 0;               // index in targets_
  Clock::time_point next_start_;  // latest time to start the next attempt
  int retries_ = 0;               // of addresses that are certain
  Clock::time_point heard_;       // when the peer first was; zero: it need not be known
  std::vector<Attempt> attempts_;
  Socket connected_;
  std::optional<Greeting> answer_;
  bool absent_ = true;  // so far: nobody, or another process, was listening
  bool gone_ = false;   // nobody listens any more where the peer surely did
  bool refused_ = false;
  std::vector<Failure> failures_;
  std::string absence_;
};

}  // namespace sluice
