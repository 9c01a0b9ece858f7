// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/late_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "src/base/log.h"
#include "src/base/system_call.h"

namespace sluice {
namespace {

// The set-ups that have a timer. A timer has the number of its set-up, not a pointer, so if it
// expires while the set-up ends it finds none.
constinit std::mutex mutex;
constinit LateRanks* first = nullptr;
constinit uintptr_t last_number = 0;

}  // namespace

struct LateRanksTimer {
  static void expire(sigval number) {
    sigset_t all;  // the program's own threads handle its signals
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    const std::lock_guard lock(mutex);
    const auto wanted = reinterpret_cast<uintptr_t>(number.sival_ptr);
    LateRanks* each = first;
    while (each && each->number_ != wanted) each = each->next_;
    if (each) each->report_if_due();
  }
};

LateRanks::~LateRanks() {
  if (!has_timer_) return;
  {
    const std::lock_guard lock(mutex);
    LateRanks** link = &first;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
  }
  timer_delete(timer_);
}

// Late ranks are not reported then.
void LateRanks::warn_of_no_timer(int error) const {
  static constinit std::atomic<bool> warned{false};
  if (timeout_ <= 0 || warned.exchange(true)) return;
  char reason[128] = "";
  log(Level::warning, "%s: SLUICE_SETUP_TIMEOUT can't be kept: no timer can be had: %s", function_,
      strerror_r(error, reason, sizeof(reason)));
}

void LateRanks::begin() {
  if (has_begun_) return;
  has_begun_ = true;
  began_ = Clock::now();
  const std::lock_guard lock(mutex);
  number_ = ++last_number;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_value.sival_ptr = reinterpret_cast<void*>(number_);
  event.sigev_notify_function = LateRanksTimer::expire;
  const int error = -system_call([&] { return timer_create(CLOCK_MONOTONIC, &event, &timer_); });
  has_timer_ = error == 0;
  if (!has_timer_) return warn_of_no_timer(error);
  next_ = first;
  first = this;
  set_timer();
}

void LateRanks::set_timer() {
  const double waited = std::chrono::duration<double>(Clock::now() - began_).count();
  const double until = timeout_ > 0 ? std::min(timeout_, report_after_) : report_after_;
  const double left = std::max(until - waited, 0.1);
  itimerspec when{};
  when.it_interval.tv_sec = 1;  // again each second, in case no thread could be started
  when.it_value.tv_sec = static_cast<time_t>(left);
  when.it_value.tv_nsec = static_cast<long>((left - std::floor(left)) * 1e9);
  timer_settime(timer_, 0, &when, nullptr);
}

// (MPI does not tell which ranks are missing.)
void LateRanks::report_if_due() {
  constexpr const char* cause =
      "one has not called a collective on it yet, or runs without Sluice because";
  const double waited = std::chrono::duration<double>(Clock::now() - began_).count();
  const bool waits = waits_.load(std::memory_order_relaxed);
  if (waits && timeout_ > 0 && waited >= timeout_) {
    log(Level::error,
        "%s: setting up %s: not all of its %u ranks have answered within %.0f s: %s %s; "
        "this process ends now (SLUICE_SETUP_TIMEOUT)",
        function_, name_.c_str(), size_, waited, cause, why_without_sluice);
    std::_Exit(EXIT_FAILURE);
  }
  if (waited >= report_after_) {
    if (waits) {
      log(Level::warning,
          "%s: setting up %s: not all of its %u ranks have answered within %.0f s: %s %s; "
          "still waiting",
          function_, name_.c_str(), size_, waited, cause, why_without_sluice);
    }
    report_after_ *= 2;
  }
  set_timer();
}

}  // namespace sluice
