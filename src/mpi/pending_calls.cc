// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/pending_calls.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "src/base/log.h"
#include "src/mpi/nonblocking_call.h"
#include "src/mpi/runtime.h"
#include "src/mpi/thread_state.h"

namespace sluice {

constinit std::atomic<uint32_t> live_requests{0};
constinit std::atomic<uint8_t> errands{0};

bool passes_after_errand() {
  const uint8_t which = errands.load(std::memory_order_relaxed);
  if ((which & errand_drive) != 0)
    Runtime::get().pending().drive(PendingCalls::Thread::of_the_program);
  return (which & errand_pass) != 0;
}

// The registry's lock. Collectives that MPI or the program's functions call meanwhile bypass
// Sluice.
class PendingCalls::Lock {
 public:
  explicit Lock(PendingCalls& calls) : calls_(calls) {
    while (!calls.try_lock()) sched_yield();
  }
  Lock(PendingCalls& calls, std::adopt_lock_t) : calls_(calls) {}
  ~Lock() {
    this_thread.inside = was_inside_;
    calls_.locked_.clear(std::memory_order_release);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  PendingCalls& calls_;
  const bool was_inside_ = std::exchange(this_thread.inside, true);
};

Status PendingCalls::start(Team& team, const Algorithm& by, NonblockingCall& call) {
  const Lock lock(*this);
  if (!has_begun_ && !begin_progress(way_, *this, process_)) {
    return team.nonblocking().fail_call(
        {Code::unavailable, "MPI lets no non-blocking calls progress"});
  }
  has_begun_ = true;
  NonblockingTeam& half = team.nonblocking();
  teams_.reserve(teams_.size() + 1);
  const bool was_idle = half.is_idle();
  call.pending_ = this;
  if (Status status = half.start(by, call.call(), call); !status.ok()) return status;
  if (was_idle) teams_.push_back(&half);
  if (!call.make_request()) {
    Status status = half.fail_call({Code::internal, "MPI makes no request"});
    half.advance();
    return status;
  }
  call.state_ = NonblockingCall::State::running;
  call.links_.next = live_;
  if (live_) live_->links_.previous = &call;
  live_ = &call;
  own_operations_ += call.has_own_operation();
  live_requests.fetch_add(1, std::memory_order_relaxed);
  errands.fetch_or(errand_drive, std::memory_order_relaxed);
  if (running_.fetch_add(1, std::memory_order_relaxed) == 0) wake();
  return {};
}

// (Whoever sleeps does so on the number of running calls.)
uint32_t PendingCalls::await_calls() {
  if (!any()) {
    const timespec most{.tv_sec = 1, .tv_nsec = 0};
    syscall(SYS_futex, &running_, FUTEX_WAIT_PRIVATE, 0, &most, nullptr, 0);
  }
  return drives_.load(std::memory_order_relaxed);
}

void PendingCalls::wake() {
  if (way_ == ProgressWay::thread)
    syscall(SYS_futex, &running_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

Status PendingCalls::fail(Team& team, const Status& cause) try {
  const Lock lock(*this);
  return team.nonblocking().fail_call(cause);
} catch (const std::bad_alloc&) {
  return cause;
}

int PendingCalls::drive(Thread thread) {
  constexpr int most_turns = 16;  // so that MPI goes on, too
  if (!try_lock()) return 0;
  NonblockingCall* ended = nullptr;
  {
    const Lock lock(*this, std::adopt_lock);
    for (int turns = 1; turn() && !ended_ && turns < most_turns; ++turns) {
    }
    watch();
    std::erase_if(teams_, [](const NonblockingTeam* team) { return team->is_idle(); });
    if (thread == Thread::of_sluice) return 0;
    drives_.fetch_add(1, std::memory_order_relaxed);
    ended = collect_ended();
  }
  return complete(ended);
}

// True if there is more to do at once.
bool PendingCalls::turn() {
  bool more = process_.endpoint->progress();
  for (NonblockingTeam* const team : teams_) more |= team->advance();
  idle_turns_ = more ? 0 : idle_turns_ + 1;
  return more;
}

NonblockingCall* PendingCalls::collect_ended() {
  if (!ended_) return nullptr;
  uint32_t number = 0;
  for (NonblockingCall* call = ended_; call; call = call->links_.next_ended) {
    call->state_ = NonblockingCall::State::completed;
    ++number;
  }
  if (running_.fetch_sub(number, std::memory_order_relaxed) == number)
    errands.fetch_and(static_cast<uint8_t>(~errand_drive), std::memory_order_relaxed);
  drop_idle_teams();
  return std::exchange(ended_, nullptr);
}

// Without the lock, because MPI may call the request's free function here, if another thread waits
// for it. (From then on the call is gone.)
int PendingCalls::complete(NonblockingCall* ended) {
  int completed = 0;
  for (; ended; ++completed) {
    NonblockingCall* const next = ended->links_.next_ended;
    real().Grequest_complete(ended->request_);
    ended = next;
  }
  return completed;
}

// (Reading the clock takes as long as a turn.)
void PendingCalls::watch() {
  constexpr uint32_t between_looks = 64;
  if (idle_turns_ % between_looks != between_looks - 1) return;
  const bool waits = waiting_.load(std::memory_order_relaxed) > 0;
  const auto since = Clock::duration(waiting_since_.load(std::memory_order_relaxed));
  const auto waited = waits ? Clock::now().time_since_epoch() - since : Clock::duration(0);
  for (NonblockingTeam* const team : teams_) team->watch(waited);
}

void PendingCalls::drop_idle_teams() {
  std::erase_if(teams_, [](const NonblockingTeam* team) { return team->is_idle(); });
  std::erase_if(adopted_, [](const Adopted& each) { return each.half->is_idle(); });
}

void PendingCalls::forget(NonblockingCall& call) {
  const Lock lock(*this);
  auto& links = call.links_;
  (links.previous ? links.previous->links_.next : live_) = links.next;
  if (links.next) links.next->links_.previous = links.previous;
  own_operations_ -= call.has_own_operation();
  live_requests.fetch_sub(1, std::memory_order_relaxed);
}

void PendingCalls::adopt(std::unique_ptr<Team> team) {
  const Lock lock(*this);
  if (team->is_idle()) return;
  NonblockingTeam* const half = &team->nonblocking();
  adopted_.push_back({half, std::move(team)});
}

void PendingCalls::note_freed(MPI_Comm comm) {
  if (live_requests.load(std::memory_order_relaxed) == 0) return;
  const Lock lock(*this);
  for (NonblockingCall* call = live_; call; call = call->links_.next) {
    if (call->comm_ == comm) call->comm_ = real().comm_null;
  }
}

bool PendingCalls::defer_operation(MPI_Op op) try {
  const Lock lock(*this);
  if (own_operations_ > 0) deferred_.operations.push_back(op);
  return own_operations_ > 0;
} catch (const std::bad_alloc&) {
  return false;
}

bool PendingCalls::defer_type(MPI_Datatype type) try {
  const Lock lock(*this);
  if (own_operations_ > 0) deferred_.types.push_back(type);
  return own_operations_ > 0;
} catch (const std::bad_alloc&) {
  return false;
}

void PendingCalls::free_deferred() {
  decltype(deferred_) freed;
  {
    const Lock lock(*this);
    if (own_operations_ > 0) return;
    std::swap(freed, deferred_);
  }
  for (MPI_Op& op : freed.operations) real().Op_free(&op);
  for (MPI_Datatype& type : freed.types) real().Type_free(&type);
}

void PendingCalls::begin_wait() {
  if (waiting_.fetch_add(1, std::memory_order_relaxed) > 0) return;
  waiting_since_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

// Names requests that no wait or test of the program has completed.
bool PendingCalls::complain_of_live() {
  constexpr int most = 8;
  const Lock lock(*this);
  int named = 0;
  for (const NonblockingCall* call = live_; call && named < most; call = call->links_.next) {
    log(Level::error,
        "MPI_Finalize while %s of %zu bytes is in flight: the program has not waited for it",
        call->name(), call->call().bytes);
    ++named;
  }
  const uint32_t all = live_requests.load(std::memory_order_relaxed);
  if (all > most) log(Level::error, "and %u more", all - most);
  return has_begun_;
}

// Ends what does not end by itself, as another rank has not started it.
void PendingCalls::fail_all() {
  const Lock lock(*this);
  for (NonblockingTeam* const team : teams_) {
    (void)team->fail_call({Code::invalid, "MPI_Finalize has begun on a rank"});
  }
}

// (All ranks come here, so calls that all have started end soon.)
void PendingCalls::end() {
  constexpr auto most = std::chrono::seconds(10);
  const bool has_begun = complain_of_live();
  begin_wait();
  const auto began = Clock::now();
  for (bool gives_up = false; any();) {
    if (drive(Thread::of_the_program) == 0 && process_.progress_mpi) process_.progress_mpi();
    if (!gives_up && (gives_up = Clock::now() - began > most)) fail_all();
  }
  end_wait();
  if (has_begun) end_progress(way_);
}

}  // namespace sluice
