// SPDX-License-Identifier: BSD-3-Clause
//
// The one class that waits. While a call waits it drives the endpoint: spins first, gives MPI its progress now and then
// (a peer may be in MPI_Recv of a message that this rank sent before it entered the collective), then yields the processor, then
// sleeps in bounded naps which traffic cuts short.
#pragma once

#include <chrono>
#include <functional>

#include "transports/transport.h"

namespace sluice {

// Gives MPI a chance to progress; local, never blocks. Empty in programs without MPI.
using Poke = std::function<void()>;

class Waiter {
 public:
  using Clock = std::chrono::steady_clock;

  // spin: microseconds to spin before giving the processor away; negative: found out from how long a yield takes.
  Waiter(Endpoint* endpoint, Poke poke, int spin);

  // A call begins to wait.
  void begin();
  // One turn: moves bytes, or lets time pass as the state of the wait asks. True if anything moved.
  bool turn();
  // How long this wait has lasted; measured now and then, so up to a nap late.
  std::chrono::nanoseconds waited() const { return now_ - began_; }

 private:
  bool moved();
  void idle();
  void nap();

  Endpoint* endpoint_;
  Poke poke_;
  std::chrono::nanoseconds spin_;
  bool adaptive_;
  uint32_t turns_ = 0;
  bool spinning_ = true;
  Clock::time_point began_{}, idle_since_{}, now_{}, poked_{};
  std::chrono::microseconds nap_{0};
};

}  // namespace sluice
