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

constexpr auto before_progress = 5us;     // shorter waits without traffic do not progress MPI
constexpr auto between_progress = 100us;  // while traffic goes on
// Caps the measured cost: a call in which the kernel ran another thread says nothing of the next.
constexpr std::chrono::nanoseconds most_progress_cost = 20us;
constexpr uint32_t turns_between_looks =
    32;                                      // at the clock; a turn over a socket takes some 300 ns
constexpr auto between_yields = 5us;         // to find out whether the processor is shared
constexpr auto between_yields_alone = 25us;  // the same, after alone_after checks
constexpr uint32_t crowded_after = 3;        // checks in a row that found another thread
constexpr uint32_t alone_after = 32;         // checks in a row that found none
constexpr uint32_t left_after = 8;           // the same, where one was found before
constexpr uint32_t yields_between_looks = 8;  // for that one, in short waits
constexpr auto between_waits = 10ms;
constexpr auto between_moves = 10ms;
constexpr int shortest_pause = 16, longest_pause = 64;  // Courtesy
constexpr auto nap = 50us;
constexpr auto longest_nap = 1ms;
constexpr int naps_of_wait = 4;  // a nap may last as many times as long as the wait so far

// During a nap MPI does not progress, and the wake-up takes processor time from the sender.
std::chrono::microseconds nap_after(std::chrono::nanoseconds idle_for) {
  const auto wish = std::chrono::duration_cast<std::chrono::microseconds>(naps_of_wait * idle_for);
  return std::clamp<std::chrono::microseconds>(wish, nap, longest_nap);
}

}  // namespace

constinit thread_local Oversubscription::Evidence Oversubscription::evidence;

void Courtesy::note(Clock::time_point yielded, Clock::time_point ran_again) {
  const auto cost = ran_again - yielded;
  costly_ = cost >= slice ? costly_ + 1 : 0;
  if (costly_ < most) return;
  pause_ = costly_ == most ? shortest_pause : std::min(2 * pause_, longest_pause);
  resumes_ = ran_again + pause_ * cost;
}

Waiter::Waiter(Endpoint* endpoint, ProgressMpi progress_mpi, int spin,
               const Oversubscription& oversubscription)
    : endpoint_(endpoint),
      progress_mpi_(std::move(progress_mpi)),
      spin_(std::chrono::microseconds(spin)),
      adaptive_(spin < 0),
      oversubscription_(oversubscription) {}

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
    read_clock();
    progress_mpi(between_progress);
  } else {
    pass(true);
  }
}

// (If oversubscribed, a turn takes some microseconds. The first ones do not read the clock. Waits
// may all be shorter, so yields of one after the other count towards a look.)
void Waiter::idle() {
  if (crowded() && ++turns_ < turns_between_looks) {
    const auto now = oversubscription_.is_certain() ? Clock::time_point{} : Clock::now();
    const bool yielded = give_way(now);
    const uint32_t yields = Oversubscription::evidence.yields += yielded;
    if (yielded && yields % yields_between_looks == 0) detect_oversubscription();
  } else {
    pass(false);
  }
}

void Waiter::pass(bool has_traffic) {
  read_clock();
  const auto idle_for = now_ - idle_since_;
  const bool often = idle_for >= (crowded() ? between_progress : before_progress);
  const bool may_have_yielded =
      progress_mpi(often ? progress_cost_ : between_progress) && crowded();
  if (may_have_yielded) return;
  if (adaptive_) {
    yield();
    if (has_traffic) check_peers();
  } else if (idle_for >= spin_) {
    has_traffic ? endpoint_->wait(nap_after(idle_for)) : std::this_thread::sleep_for(nap);
  }
}

// An endpoint checks for dead peers in wait(), at the latest.
void Waiter::check_peers() {
  if (now_ - looked_around_ < between_waits) return;
  looked_around_ = now_;
  endpoint_->wait(std::chrono::microseconds(0));
}

// Lets MPI progress, if `after` has passed since the last time. If oversubscribed, not in two turns
// in a row: it is not known whether MPI yields, so the next turn does.
bool Waiter::progress_mpi(std::chrono::nanoseconds after) {
  const bool had_turn = std::exchange(just_progressed_, false) && crowded();
  if (!progress_mpi_ || had_turn || now_ - std::max(progressed_at_, began_) < after) return false;
  progress_mpi_();
  progressed_at_ = Clock::now();
  progress_cost_ = std::min<std::chrono::nanoseconds>(progressed_at_ - now_, most_progress_cost);
  just_progressed_ = true;
  return true;
}

void Waiter::read_clock() {
  now_ = Clock::now();
  if (began_ == Clock::time_point{}) began_ = now_;
  if (idle_since_ == Clock::time_point{}) idle_since_ = now_;
}

void Waiter::yield() {
  const bool is_alone = Oversubscription::evidence.alone >= alone_after;
  const bool due = now_ - yielded_ >= (is_alone ? between_yields_alone : between_yields);
  if (due || crowded()) give_way(now_);
  if (!due) return;
  yielded_ = now_;
  detect_oversubscription();
}

// (Ranks that are known to share a processor wait for each other: they always do.)
bool Waiter::give_way(Clock::time_point now) {
  const bool is_certain = oversubscription_.is_certain();
  Courtesy& courtesy = Oversubscription::evidence.courtesy;
  if (!is_certain && !courtesy.yields(now)) return false;
  sched_yield();
  if (!is_certain) courtesy.note(now, Clock::now());
  return true;
}

void Waiter::detect_oversubscription() {
  if (oversubscription_.is_certain()) return;
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return;
  Oversubscription::Evidence& seen = Oversubscription::evidence;
  const bool did_seem_there = seen.seems_there;
  const bool oversubscription = std::exchange(seen.switches, usage.ru_nivcsw) != usage.ru_nivcsw;
  seen.met = oversubscription ? seen.met + 1 : 0;
  seen.alone = oversubscription ? 0 : seen.alone + 1;
  seen.seems_there = did_seem_there ? seen.alone < left_after : seen.met >= crowded_after;
  if (did_seem_there || !seen.seems_there || now_ - seen.slept < between_moves) return;
  seen.slept = now_;
  std::this_thread::sleep_for(nap);
}

}  // namespace sluice
