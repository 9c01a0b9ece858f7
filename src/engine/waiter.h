// SPDX-License-Identifier: BSD-3-Clause
//
// The one class that waits. While a call waits it drives the endpoint: spins first, gives MPI its
// progress now and then (a peer may be in MPI_Recv of a message that this rank sent before it
// entered the collective), then sleeps in bounded naps which traffic cuts short. A rank that shares
// its processor with others yields it at every turn, and naps soon: what it burns, the peer it
// waits for may need. That it shares is known where ranks have told each other what they may run on
// (localities.h; 4 ranks on 2 cores reduce 4 bytes in 2.45 us then, for 2.9); otherwise it finds
// out from whether the kernel runs somebody else.
//
// (A futex of the peer's would cost more than it saves: where 4 processes on 2 cores wait for each
// other in turn, yields take 2 us a round, sleeping and being woken 17; with 8, 6 and 31. Naps that
// sockets end are no different: where 8 ranks on 4 hosts share 2 cores, an allreduce of 8 bytes
// took 140 us when they slept after 20 us without news, 78 after 100.)
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "transports/transport.h"

namespace sluice {

// Gives MPI a chance to progress; local, never blocks. Empty in programs without MPI.
using Poke = std::function<void()>;

// Whether others want this process's processor: what one of its waiters finds out goes for all, for
// most programs' communicators are many, and some live for a few calls only. Any thread.
class Company {
 public:
  bool is_there() const { return is_there_.load(std::memory_order_relaxed); }
  bool is_certain() const { return is_certain_.load(std::memory_order_relaxed); }
  // As far as can be seen.
  void seem(bool there) { is_there_.store(there, std::memory_order_relaxed); }
  // Known, once and for all.
  void be_certain() {
    is_certain_.store(true, std::memory_order_relaxed);
    seem(true);
  }

 private:
  std::atomic<bool> is_there_{false}, is_certain_{false};
};

class Waiter {
 public:
  using Clock = std::chrono::steady_clock;

  // spin: microseconds to spin before giving the processor away; negative: found out.
  Waiter(Endpoint* endpoint, Poke poke, int spin, Company& company);

  // A call begins to wait.
  void begin();
  // One turn: moves bytes, or lets time pass as the state of the wait asks.
  void turn();
  // The same where there is nothing to drive: lets time pass.
  void idle();
  // Something has come since the last turn, and more is waited for.
  void stir() { idle_since_ = {}; }
  // Whether others want this processor, as far as has been found out.
  bool crowded() const { return adaptive_ && company_.is_there(); }
  Clock::time_point now() const { return now_; }
  // How long this wait has lasted; looked up now and then, so up to a nap late.
  std::chrono::nanoseconds waited() const { return now_ - began_; }

 private:
  void look_at_clock();
  void poke();
  void yield();
  void look_for_company();
  void nap();

  Endpoint* endpoint_;
  Poke poke_;
  const std::chrono::nanoseconds spin_;  // spinning with a processor of one's own
  const bool adaptive_;
  Company& company_;
  uint32_t in_company_ = 0, alone_ = 0;  // so often found in a row
  long switches_ = 0;                    // to others by the kernel's will
  uint32_t turns_ = 0, idle_turns_ = 0;
  std::chrono::microseconds nap_{0};
  Clock::time_point began_{}, idle_since_{}, now_{}, poked_{};
};

}  // namespace sluice
