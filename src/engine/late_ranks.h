// SPDX-License-Identifier: BSD-3-Clause
//
// Reports that ranks are late for a communicator's team set-up. The calling thread is blocked in
// MPI meanwhile, so a timer reports, on a thread that the C library starts for it. That thread
// calls no MPI.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

namespace sluice {

// Why a rank may take part in MPI's calls without Sluice, for messages.
constexpr const char* why_without_sluice =
    "the preload did not reach it (mpirun -x LD_PRELOAD reaches all), "
    "SLUICE_ENABLE is off there, "
    "or it takes MPI's functions from the MPI library's handle, as Julia and Python's ctypes do "
    "(sluice run --audit serves these)";

// One set-up. Its kernel timer is made at the first wait, and deleted with this object.
class LateRanks {
 public:
  // function, name: the MPI call and the communicator, for messages; size: its ranks. timeout:
  // seconds after which the process is ended; 0: never. Reports after 5 s, 10 s, 20 s, ...
  LateRanks(const char* function, const std::string& name, uint32_t size, double timeout)
      : function_(function), name_(name), size_(size), timeout_(timeout) {}
  ~LateRanks();
  LateRanks(const LateRanks&) = delete;
  LateRanks& operator=(const LateRanks&) = delete;

  // Exists while this rank waits for others.
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
  void report_if_due();

  const char* const function_;
  const std::string& name_;
  const uint32_t size_;
  const double timeout_;
  std::atomic<bool> waits_{false};
  // Written under the lock on the list of all that have a timer (late_ranks.cc), or before this is
  // in that list.
  bool has_begun_ = false, has_timer_ = false;
  timer_t timer_{};
  uintptr_t number_ = 0;
  Clock::time_point began_;
  double report_after_ = 5;
  LateRanks* next_ = nullptr;
};

}  // namespace sluice
