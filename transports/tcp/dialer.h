// SPDX-License-Identifier: BSD-3-Clause
//
// Connects to a process: tries its addresses in turn, without blocking, within a deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/tcp/address.h"
#include "transports/tcp/socket.h"
#include "transports/tcp/tcp.h"

namespace sluice {

class Dialer {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State { dialing, connected, failed };

  Dialer(const TcpOptions& options, std::vector<Candidate> candidates);

  // Goes on as far as it can now.
  State advance();

  // While dialing: becomes writable when there is news.
  int fd() const { return socket_.fd(); }
  // Once connected, once.
  Socket take() { return std::move(socket_); }
  // Once failed: each address, and what was wrong with it.
  const std::string& failures() const { return failures_; }
  // Every address was refused: nobody listens there.
  bool refused() const { return refused_; }

 private:
  bool try_next();
  bool waits();
  void note(int error);

  const TcpOptions& options_;
  const std::vector<Candidate> candidates_;
  const Clock::time_point deadline_;
  size_t next_ = 0;               // in candidates_; the one before is being tried
  Clock::time_point give_up_at_;  // that one
  Socket socket_;
  bool established_ = false;
  bool refused_ = true;
  std::string failures_;
};

}  // namespace sluice
