// SPDX-License-Identifier: BSD-3-Clause
//
// The one class that waits. While a call waits, it drives the endpoint and spins.
//
// MPI progress. A peer may be in an MPI call that needs this rank's MPI: an MPI_Recv of what this
// rank sent before it entered the collective, or an atomic operation on this rank's window. So once
// a wait has lasted some microseconds, about every second turn lets MPI progress, as often as MPI's
// own waiting would, but for half of the time at most.
//
// Oversubscription. A rank that shares its processor yields it in the turns between, because
// spinning may take CPU time from the peer it waits for (unless all ranks there wait for ranks on
// other processors: Rounds, arena.cc). Ranks that have told each other which processors they may
// use know that they share them (localities.h; 4 ranks on 2 cores then reduce 4 bytes in 2.45 us,
// else in 2.9). Otherwise a rank infers it from involuntary context switches. It then sleeps once,
// for 50 us. The scheduler moves a thread that wakes up to an idle processor, but leaves threads
// that spin or yield on theirs for some 20 ms (8 ranks that began together on 16 cores: 12 us a
// barrier instead of 0.5). A neighbour that never waits, such as another program, keeps the
// processor for its whole slice whenever it is yielded to. A rank that inferred it and sees that
// happen spins for a while instead (Courtesy), as MPI libraries do. The scheduler gives the
// neighbour its share in any case, and most calls then fall into the rank's own slices.
//
// Otherwise it never sleeps unless SLUICE_SPIN says so (MPI libraries do not either), because data
// on MPI's own transports would not wake it. It then sleeps for 50 us, and longer as the wait
// lasts, 1 ms at most. Messages end a sleep. Flags in an arena do not, so there it sleeps for 50 us
// at a time. Peers do not wake each other by futex, because that costs more than it saves: a round
// in which 4 processes on 2 cores wait for each other takes 2 us with yields, 17 with sleeps and
// wake-ups (8 processes: 6 and 31).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "transports/transport.h"

namespace sluice {

// Lets MPI progress; local, never blocks. Empty in programs without MPI.
using ProgressMpi = std::function<void()>;

// Whether a thread that may share its processor yields it. After `most` yields in a row that each
// cost a slice it spins, for 16 times that cost, and twice as long after each further one, up to 64
// times.
class Courtesy {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds slice{500};  // schedulers' are some milliseconds
  static constexpr uint32_t most = 2;

  bool yields(Clock::time_point now) const { return now >= resumes_; }
  void note(Clock::time_point yielded, Clock::time_point ran_again);

 private:
  uint32_t costly_ = 0;  // yields in a row that cost a slice
  int pause_ = 0;        // how many times the cost of the last one
  Clock::time_point resumes_{};
};

// Whether this process's processors are oversubscribed. What one of its waiters learns holds for
// all, because programs have many communicators, and some live for a few calls only.
class Oversubscription {
 public:
  // per_processor: ranks for each of its processors. The largest value stays for good. Any thread.
  void learn(uint32_t per_processor) {
    uint32_t known = per_processor_.load(std::memory_order_relaxed);
    while (known < per_processor &&
           !per_processor_.compare_exchange_weak(known, per_processor, std::memory_order_relaxed)) {
    }
  }
  uint32_t per_processor() const { return per_processor_.load(std::memory_order_relaxed); }
  bool is_certain() const { return per_processor() > 1; }

  // A thread's observations of its own processor.
  struct Evidence {
    bool seems_there = false;     // another thread that wants it
    uint32_t met = 0, alone = 0;  // checks in a row that found another thread, or none
    long switches = 0;            // involuntary context switches so far
    uint32_t yields = 0;          // in short waits
    std::chrono::steady_clock::time_point slept{};  // when it last slept to be moved away
    Courtesy courtesy{};
  };
  static constinit thread_local Evidence evidence __attribute__((tls_model("initial-exec")));

  bool is_there() const { return is_certain() || evidence.seems_there; }

 private:
  std::atomic<uint32_t> per_processor_{1};
};

class Waiter {
 public:
  using Clock = std::chrono::steady_clock;

  // spin: microseconds to spin before short sleeps; negative: never sleep, yield as needed.
  Waiter(Endpoint* endpoint, ProgressMpi progress_mpi, int spin,
         const Oversubscription& oversubscription);

  // To be called when a call begins to wait.
  void begin();
  // One turn: drives the endpoint, and at times yields, sleeps or lets MPI progress.
  void turn();
  // One turn of a wait in an arena, without the endpoint.
  void idle();
  // To be called if data has come since the last turn and the wait goes on.
  void stir() { idle_since_ = {}; }
  // Whether this processor is oversubscribed, as far as is known. False if SLUICE_SPIN allows
  // sleep.
  bool crowded() const { return adaptive_ && oversubscription_.is_there(); }
  // Ranks for each processor, as far as is known for certain; else 1.
  uint32_t per_processor() const { return oversubscription_.per_processor(); }
  Clock::time_point now() const { return now_; }
  // To be called before `now` by who takes no turns.
  void read_clock();
  // How long this wait has lasted. The clock is read only now and then.
  std::chrono::nanoseconds waited() const { return now_ - began_; }

 private:
  void pass(bool has_traffic);
  bool progress_mpi(std::chrono::nanoseconds after);
  void yield();
  bool give_way(Clock::time_point now);
  void check_peers();
  void detect_oversubscription();

  Endpoint* endpoint_;
  ProgressMpi progress_mpi_;
  const std::chrono::nanoseconds spin_;
  const bool adaptive_;
  const Oversubscription& oversubscription_;
  uint32_t turns_ = 0;
  bool just_progressed_ = false;
  std::chrono::nanoseconds progress_cost_{0};
  Clock::time_point began_{}, idle_since_{}, now_{}, progressed_at_{}, yielded_{}, looked_around_{};
};

}  // namespace sluice
