// SPDX-License-Identifier: BSD-3-Clause
//
// Reports that ranks are late for a communicator's set-up, which blocks in MPI meanwhile: a timer
// does it, on a thread that the C library starts for it. That thread calls no MPI.
#pragma once

#include <atomic>
#include <chrono>
#include <ctime>
#include <string>

namespace sluice {

// Of one set-up. A timer of the kernel's is set at its first wait, and goes with it.
class LateRanks {
 public:
  // function, name: of the MPI call and of the communicator, which has so many ranks. timeout:
  // seconds after which the process is ended; 0: none. Reports after 5 s, 10 s, 20 s, ...
  LateRanks(const char* function, const std::string& name, uint32_t size, double timeout)
      : function_(function), name_(name), size_(size), timeout_(timeout) {}
  ~LateRanks();
  LateRanks(const LateRanks&) = delete;
  LateRanks& operator=(const LateRanks&) = delete;

  // While it lives, ranks are waited for.
  class Wait {
   public:
    explicit Wait(LateRanks& late) : late_(late) {
      late_.begin();
      late_.waits_.store(true, std::memory_order_relaxed);
    }
    ~Wait() { late_.waits_.store(false, std::memory_order_relaxed); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    LateRanks& late_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  friend struct LateRanksTimer;

  void begin();
  void warn_of_no_timer(int error) const;
  void set_timer();
  void look();

  const char* const function_;
  const std::string& name_;
  const uint32_t size_;
  const double timeout_;
  std::atomic<bool> waits_{false};
  // What follows is changed with the lock on all that have a timer (late_ranks.cc).
  bool has_begun_ = false, has_timer_ = false;
  timer_t timer_{};
  uintptr_t number_ = 0;
  Clock::time_point began_;
  double report_after_ = 5;
  LateRanks* next_ = nullptr;
};

}  // namespace sluice
