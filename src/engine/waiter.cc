// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/waiter.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr auto before_pokes = 5us;     // shorter waits without traffic do not poke MPI
constexpr auto between_pokes = 100us;  // while traffic goes on
// Caps the measured cost: a poke in which the kernel ran another thread says nothing of the next.
constexpr std::chrono::nanoseconds dearest_poke = 20us;
constexpr uint32_t turns_between_looks =
    32;                                      // at the clock; a turn over a socket takes some 300 ns
constexpr auto between_yields = 5us;         // to find out whether the processor is shared
constexpr auto between_yields_alone = 25us;  // the same, after alone_after checks
constexpr uint32_t crowded_after = 3;        // checks in a row that found another thread
constexpr uint32_t alone_after = 32;         // checks in a row that found none
constexpr auto between_waits = 10ms;
constexpr auto nap = 50us;
constexpr auto longest_nap = 1ms;
constexpr int naps_of_wait = 4;  // a nap may last as many times as long as the wait so far

// While it lasts, MPI does not progress; to wake up takes processor time from whoever sends.
std::chrono::microseconds nap_after(std::chrono::nanoseconds idle_for) {
  const auto wish = std::chrono::duration_cast<std::chrono::microseconds>(naps_of_wait * idle_for);
  return std::clamp<std::chrono::microseconds>(wish, nap, longest_nap);
}

}  // namespace

constinit thread_local Company::Evidence Company::evidence;

Waiter::Waiter(Endpoint* endpoint, Poke poke, int spin, const Company& company)
    : endpoint_(endpoint),
      poke_(std::move(poke)),
      spin_(std::chrono::microseconds(spin)),
      adaptive_(spin < 0),
      company_(company) {}

void Waiter::begin() {
  turns_ = 0;
  began_ = now_ = idle_since_ = {};
}

void Waiter::turn() {
  const bool moved = endpoint_->progress();
  if (moved) idle_since_ = {};
  // Traffic of other teams may never end, so MPI must progress while bytes move, too.
  if (++turns_ % turns_between_looks != 0 &&
      (moved || (turns_ < turns_between_looks && !crowded()))) {
    return;
  }
  if (moved) {
    look_at_clock();
    poke(between_pokes);
  } else {
    pass(true);
  }
}

// (If oversubscribed, a turn takes some microseconds. The first ones do not read the clock.)
void Waiter::idle() {
  if (crowded() && ++turns_ < turns_between_looks) {
    sched_yield();
  } else {
    pass(false);
  }
}

void Waiter::pass(bool has_traffic) {
  look_at_clock();
  const auto idle_for = now_ - idle_since_;
  const bool often = idle_for >= (crowded() ? between_pokes : before_pokes);
  const bool may_have_yielded = poke(often ? poke_cost_ : between_pokes) && crowded();
  if (may_have_yielded) return;
  if (adaptive_) {
    yield();
    if (has_traffic) look_around();
  } else if (idle_for >= spin_) {
    has_traffic ? endpoint_->wait(nap_after(idle_for)) : std::this_thread::sleep_for(nap);
  }
}

// An endpoint checks for dead peers in wait(), at the latest.
void Waiter::look_around() {
  if (now_ - looked_around_ < between_waits) return;
  looked_around_ = now_;
  endpoint_->wait(std::chrono::microseconds(0));
}

// Lets MPI progress, if `after` has passed since the last time. If oversubscribed, not in two turns
// in a row: it is not known whether MPI yields, so the next turn does.
bool Waiter::poke(std::chrono::nanoseconds after) {
  const bool had_turn = std::exchange(just_poked_, false) && crowded();
  if (!poke_ || had_turn || now_ - std::max(poked_, began_) < after) return false;
  poke_();
  poked_ = Clock::now();
  poke_cost_ = std::min<std::chrono::nanoseconds>(poked_ - now_, dearest_poke);
  just_poked_ = true;
  return true;
}

void Waiter::look_at_clock() {
  now_ = Clock::now();
  if (began_ == Clock::time_point{}) began_ = now_;
  if (idle_since_ == Clock::time_point{}) idle_since_ = now_;
}

void Waiter::yield() {
  const bool is_alone = Company::evidence.alone >= alone_after;
  const bool due = now_ - yielded_ >= (is_alone ? between_yields_alone : between_yields);
  if (due || crowded()) sched_yield();
  if (!due) return;
  yielded_ = now_;
  look_for_company();
}

void Waiter::look_for_company() {
  if (company_.is_certain()) return;
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return;
  Company::Evidence& seen = Company::evidence;
  const bool company = std::exchange(seen.switches, usage.ru_nivcsw) != usage.ru_nivcsw;
  seen.met = company ? seen.met + 1 : 0;
  seen.alone = company ? 0 : seen.alone + 1;
  seen.seems_there = seen.seems_there ? seen.alone < alone_after : seen.met >= crowded_after;
}

}  // namespace sluice
