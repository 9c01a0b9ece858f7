// SPDX-License-Identifier: BSD-3-Clause
//
// The one class that waits. While a call waits it drives the endpoint: spins first, gives MPI its
// progress now and then (a peer may be in MPI_Recv of a message that this rank sent before it
// entered the collective), then sleeps in bounded naps which traffic cuts short. A rank that shares
// its processor with others yields it at every turn, and naps sooner: what it burns, the peer it
// waits for may need (unless all there wait for ranks on other processors: Rounds, arena.cc). That
// it shares is known where ranks have told each other what they may run on (localities.h; 4 ranks
// on 2 cores reduce 4 bytes in 2.45 us then, for 2.9); otherwise it finds out from whether the
// kernel runs somebody else.
//
// (A futex of the peer's would cost more than it saves: where 4 processes on 2 cores wait for each
// other in turn, yields take 2 us a round, sleeping and being woken 17; with 8, 6 and 31. Naps that
// sockets end are no different: where 8 ranks on 4 hosts share 2 cores, an allreduce of 8 bytes
// took 173 us when they slept after 100 us without news, 92 after 1000, and large ones the same.)
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "transports/transport.h"

namespace sluice {

// Gives MPI a chance to progress; local, never blocks. Empty in programs without MPI.
using Poke = std::function<void()>;

// Whether others want this process's processors. What one of its waiters learns goes for all, for
// programs' communicators are many, and some live for a few calls only.
class Company {
 public:
  // So many ranks there are for each of its processors: the most is kept, for good. Any thread.
  void learn(uint32_t per_processor) {
    uint32_t known = per_processor_.load(std::memory_order_relaxed);
    while (known < per_processor &&
           !per_processor_.compare_exchange_weak(known, per_processor, std::memory_order_relaxed)) {
    }
  }
  uint32_t per_processor() const { return per_processor_.load(std::memory_order_relaxed); }
  bool is_certain() const { return per_processor() > 1; }

  // What a thread has seen of its own processor.
  struct Evidence {
    bool seems_there = false;
    uint32_t met = 0, alone = 0;  // so many looks in a row found somebody else, or nobody
    long switches = 0;            // to others by the kernel's will
  };
  static constinit thread_local Evidence evidence __attribute__((tls_model("initial-exec")));

  bool is_there() const { return is_certain() || evidence.seems_there; }

 private:
  std::atomic<uint32_t> per_processor_{1};
};

class Waiter {
 public:
  using Clock = std::chrono::steady_clock;

  // spin: microseconds to spin before giving the processor away; negative: found out.
  Waiter(Endpoint* endpoint, Poke poke, int spin, const Company& company);

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
  // Ranks for each processor, as far as is known for certain.
  uint32_t per_processor() const { return company_.per_processor(); }
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
  const Company& company_;
  uint32_t turns_ = 0, idle_turns_ = 0;
  std::chrono::microseconds nap_{0};
  Clock::time_point began_{}, idle_since_{}, now_{}, poked_{};
};

}  // namespace sluice
