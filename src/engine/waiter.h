// SPDX-License-Identifier: BSD-3-Clause
//
// The one class that waits. While a call waits it drives the endpoint and spins. A peer may be in
// an MPI call that needs this rank's MPI (an MPI_Recv of what this rank sent before it entered the
// collective, an atomic operation on this rank's window): once a wait has lasted some microseconds,
// every second turn gives MPI its progress, about as often as MPI's own waiting would, but for half
// of the time at most. A rank that shares its processor with others yields it in the turns between:
// spinning may take CPU time from the peer it waits for (unless all there wait for ranks on other
// processors: Rounds, arena.cc). That it shares is known where ranks have told each other what they
// may run on (localities.h; 4 ranks on 2 cores reduce 4 bytes in 2.45 us then, for 2.9); otherwise
// it finds out from whether the kernel runs somebody else. It never sleeps, as MPI libraries don't,
// unless the user asks for it (SLUICE_SPIN): what comes over MPI's own transports would not wake
// it.
//
// (A futex of the peer's would cost more than it saves: where 4 processes on 2 cores wait for each
// other in turn, yields take 2 us a round, sleeping and being woken 17; with 8, 6 and 31.)
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

  // spin: microseconds to spin before short sleeps; negative: none, and yields as needed.
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
  // How long this wait has lasted; looked up now and then.
  std::chrono::nanoseconds waited() const { return now_ - began_; }

 private:
  void pass(bool has_traffic);
  void look_at_clock();
  bool poke(std::chrono::nanoseconds after);
  void yield();
  void look_around();
  void look_for_company();

  Endpoint* endpoint_;
  Poke poke_;
  const std::chrono::nanoseconds spin_;
  const bool adaptive_;
  const Company& company_;
  uint32_t turns_ = 0;
  bool just_poked_ = false;
  std::chrono::nanoseconds poke_cost_{0};
  Clock::time_point began_{}, idle_since_{}, now_{}, poked_{}, yielded_{}, looked_around_{};
};

}  // namespace sluice
