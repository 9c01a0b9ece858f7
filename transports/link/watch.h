// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the host at the other end of a connection lives. After each retransmission the kernel
// waits longer for the next one, so it notices late that a network is back. So before a silent host
// is taken for dead it is asked over fresh connections to the peer's listener, on which nothing is
// sent: its kernel takes one though the process computes. If it does, the first connection has
// another SLUICE_PEER_TIMEOUT, in which a further try must fail; a host that only answers on fresh
// ones has forgotten the first.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "transports/link/diagnosis.h"
#include "transports/link/vigil.h"
#include "transports/tcp/connector.h"
#include "transports/tcp/socket.h"

namespace sluice {

// The fresh connections.
class Inquiry {
 public:
  using Clock = Vigil::Clock;
  enum class Answer : uint8_t {
    awaited,
    none,    // nor can it be asked, perhaps
    lives,   // its kernel has taken a connection
    refused  // nobody listens there any more
  };

  // Called about twice a second: begins another one, because the first words of one that began in
  // an outage are repeated after a second. Where nobody answers that is so after
  // Vigil::time_to_ask.
  Answer ask(Clock::time_point now, const Connector& connector, const Socket& silent);
  void drop() { begun_.clear(); }

 private:
  Answer read_answer() const;

  std::vector<Socket> begun_;
  Clock::time_point since_{};
};

class Watch {
 public:
  // Called about twice a second while something is pending on the connection. What shows of the
  // peer: nothing; silent, for the limit; or broke: its host answers, or did, and nothing on this
  // connection. limit: 0: nothing.
  Diagnosis::Sign judge(const Connector& connector, const Socket& socket, Vigil::Duration limit);
  // For how long it had not answered at the last look, if for the limit or longer; else 0.
  Vigil::Duration silence() const { return silence_; }
  // Nothing is pending: what follows is another wait.
  void rest();

 private:
  Vigil vigil_;
  Inquiry inquiry_;
  Vigil::Duration silence_{};
};

}  // namespace sluice
