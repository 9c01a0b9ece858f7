// SPDX-License-Identifier: BSD-3-Clause
//
// Connects to a process without blocking. Tries its addresses in order until one connects. The next
// attempt starts as soon as one fails, or after at most a quarter of a second without success,
// while slower attempts continue ("Happy Eyeballs", RFC 8305). An attempt that starts late, because
// this process was busy or an earlier attempt used up the deadline, still gets its quarter of a
// second. One that connects to an address that is certain to be the peer's gets a second, in which
// the peer may answer; then the next address is tried beside it, because networks that hosts have
// alike may lead to other machines. The first proper answer wins. (Of the greetings for a rail,
// which all say its number, the peer answers one without proofs, and takes one with.)
//
// While a host does not answer, its kernel is asked less and less often (after 1, 3, 7 and 15 s). A
// network that is back would be noticed late. So beside the socket that has been connecting for
// half a second there is a second one to the same address, and a fresh one in its place each half
// second. The first goes on, for networks as slow as that. The one that the host answers first is
// kept; nothing was sent over the other.
//
// If all have failed, they are tried again each second until the deadline: a network may come back,
// and the other side may dial, too (meeting.h). But if they lead to this host, it fails at once.
// One that resumes does so each second with those that have failed, while others go on; and who
// closes connections may be the peer: how long to look for it is for the link to say
// (link/search.h).
//
// The asking side's dialer also takes connections that the other side has made and that invite
// (adopt). The answering side's only sends its invitation.
//
// How long an answer may take: the peer's kernel takes the connection and acknowledges a greeting
// at once, but the process answers only within a call, and may be busy for hours. So nobody is late
// whose kernel acknowledges; if it has not by the deadline, the attempt fails. Should the host die
// later, keepalive ends the connection. The other side has the same deadline: it dials, too, and
// takes the peer for unreachable if by then no connection has passed in either direction, or its
// invitation is not acknowledged, unless other connections show that the host lives.
//
// Another process may answer at any address. So this side sends only its greeting until the answer
// contains the key that only the peer knows, or the peer's proof (greeting.h); then, with proofs or
// counts, its last proof. The answer may take any time, because the peer may be busy. A wrong
// process closes the connection or answers something else. If it resumes, what it drops is reset
// (resumption.h).
//
// A peer to which many strangers connect, or that has not heard this side in time, may close the
// connection, too. So an address that is certain is tried again, and has the deadline's time to
// answer since it first closed a connection: a peer whose answers are lost is not waited for.
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
  Action look_at(Attempt& attempt);
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
};

}  // namespace sluice
