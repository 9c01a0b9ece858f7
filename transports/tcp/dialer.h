// SPDX-License-Identifier: BSD-3-Clause
//
// Connects to a process, without blocking: tries its addresses in order until one connects. The
// next one is tried as soon as one fails, and also if none has come to anything for a quarter of a
// second; the slower attempts go on beside it ("Happy Eyeballs", RFC 8305). One that is begun late,
// as this process was busy or the one before took all the time there was, has that time all the
// same.
//
// A connection to an address that is not certain to be the peer's may lead to another process. So
// this side greets first and sends nothing else until the answer holds the key that only the peer
// knows. That answer may take any time, as the peer may be busy elsewhere; a wrong process closes
// the connection or answers something else.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/tcp/address.h"
#include "transports/tcp/shared.h"
#include "transports/tcp/socket.h"
#include "transports/tcp/wire.h"

namespace sluice {

class Dialer {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State { dialing, connected, failed };

  Dialer(const TcpShared& shared, std::vector<Candidate> candidates, const Greeting& greeting);

  // Goes on as far as it can now.
  State advance();

  // While dialing: sockets on which there may be news.
  void add_to(std::vector<pollfd>& polls) const;
  // Once connected, once.
  Socket take() { return std::move(connected_); }
  // Once connected: the peer's greeting, if it was waited for. Then this side's was sent, too.
  const std::optional<Greeting>& answer() const { return answer_; }
  // Once failed: each address, and what was wrong with it.
  const std::string& failures() const { return failures_; }
  // At every address nobody listens, or somebody else.
  bool absent() const { return absent_; }

 private:
  enum class Progress { waits, over, connected };
  struct Attempt {
    const Candidate* candidate;
    Socket socket;
    Clock::time_point until;  // it connects
    bool greeted = false;     // by this side
    size_t got = 0;           // of the answer
    std::array<std::byte, Greeting::bytes> bytes{};
  };

  void start_next();
  Progress look_at(Attempt& attempt);
  Progress connect_further(Attempt& attempt);
  Progress hear_answer(Attempt& attempt);
  bool greet(Attempt& attempt);
  bool is_certain(const Attempt& attempt) const;
  Progress fail(const Attempt& attempt, int error);
  void note(const Candidate& candidate, const std::string& what);

  const TcpShared& shared_;
  const std::vector<Candidate> candidates_;
  const Greeting greeting_;
  const Clock::time_point deadline_;
  const Clock::duration between_starts_;
  size_t next_ = 0;               // in candidates_
  Clock::time_point next_start_;  // at the latest
  std::vector<Attempt> attempts_;
  Socket connected_;
  std::optional<Greeting> answer_;
  bool absent_ = true;
  std::string failures_;
};

}  // namespace sluice
