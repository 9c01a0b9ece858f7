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

constexpr auto default_spin = 2000us;
constexpr auto crowded_spin = 1000us;
constexpr auto between_pokes = 100us;
constexpr uint32_t turns_between_looks = 32;  // a turn over a socket takes some 300 ns
constexpr uint32_t yields_between_looks = 8;  // to look at the clock takes as long as to yield
constexpr uint32_t crowded_after = 3;         // looks in a row that found somebody else
constexpr uint32_t alone_after = 32;          // looks in a row that found nobody
constexpr auto first_nap = 200us;
constexpr auto longest_nap = 1000us;
constexpr auto crowded_yields = 200us;
constexpr int naps = 64, crowded_naps = 8;  // such a part of a wait, where nothing ends the nap

}  // namespace

constinit thread_local Company::Evidence Company::evidence;

Waiter::Waiter(Endpoint* endpoint, Poke poke, int spin, const Company& company)
    : endpoint_(endpoint),
      poke_(std::move(poke)),
      spin_(spin < 0 ? std::chrono::nanoseconds(default_spin) : std::chrono::microseconds(spin)),
      adaptive_(spin < 0),
      company_(company) {}

void Waiter::begin() {
  turns_ = 0;
  began_ = now_ = idle_since_ = {};
}

void Waiter::turn() {
  const bool moved = endpoint_->progress();
  if (moved) {
    idle_since_ = {};
    nap_ = first_nap;
  }
  // Traffic of other teams may go on for ever: MPI has its turn all the same.
  if (++turns_ % turns_between_looks != 0 && (moved || !crowded())) return;
  look_at_clock();
  poke();
  if (moved) return;
  if (now_ - idle_since_ >= (crowded() ? crowded_spin : spin_)) {
    nap();
  } else if (adaptive_) {
    yield();
  }
}

void Waiter::idle() {
  if (crowded() && ++idle_turns_ % yields_between_looks != 0) {
    sched_yield();
    return;
  }
  look_at_clock();
  poke();
  const auto idle_for = now_ - idle_since_;
  if (idle_for >= (crowded() ? crowded_yields : spin_)) {
    // Nobody cuts this nap short: it is never more than a small part of the wait.
    const auto part = idle_for / (crowded() ? crowded_naps : naps);
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(part, longest_nap));
  } else if (adaptive_) {
    yield();
  }
}

void Waiter::poke() {
  if (!poke_ || now_ - std::max(poked_, began_) < between_pokes) return;
  poke_();
  poked_ = now_;
}

void Waiter::look_at_clock() {
  now_ = Clock::now();
  if (began_ == Clock::time_point{}) began_ = now_;
  if (idle_since_ == Clock::time_point{}) idle_since_ = now_;
}

void Waiter::yield() {
  sched_yield();
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

void Waiter::nap() {
  endpoint_->wait(nap_);
  nap_ = std::min<std::chrono::microseconds>(nap_ * 2, longest_nap);
  now_ = Clock::now();
}

}  // namespace sluice
