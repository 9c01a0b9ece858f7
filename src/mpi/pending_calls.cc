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
#include "src/mpi/persistent_call.h"
#include "src/mpi/runtime.h"
#include "src/mpi/thread_state.h"

namespace sluice {

constinit std::atomic<uint32_t> live_requests{0};
constinit std::atomic<uint8_t> errands{0};

bool passes_after_errand() {
  const uint8_t which = errands.load(std::memory_order_relaxed);
  if ((which & errand_drive) != 0) Runtime::get().pending().drive();
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

Status PendingCalls::begin(NonblockingTeam& part, const Algorithm& by, NonblockingCall& call) {
  if (!has_begun_ && !begin_progress(way_, *this, process_)) {
    return part.fail_call({Code::unavailable, "MPI lets no non-blocking calls progress"});
  }
  has_begun_ = true;
  teams_.reserve(teams_.size() + 1);
  const bool was_idle = part.is_idle();
  call.pending_ = this;
  if (Status status = part.start(by, call.call(), call); !status.ok()) return status;
  if (was_idle) teams_.push_back(&part);
  return {};
}

// A call runs.
void PendingCalls::note_begun() {
  errands.fetch_or(errand_drive, std::memory_order_relaxed);
  running_.fetch_add(1, std::memory_order_relaxed);
  // (A thread that waits already does not yet wait for this call.)
  if (waiting_.load(std::memory_order_relaxed) > 0)
    waiting_since_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  if (moving_.fetch_add(1, std::memory_order_relaxed) == 0) wake();
}

// A request exists.
void PendingCalls::link(NonblockingCall& call) {
  call.number_ = started_++;
  call.links_.next = live_;
  if (live_) live_->links_.previous = &call;
  live_ = &call;
  own_operations_.fetch_add(call.has_own_operation(), std::memory_order_relaxed);
  live_requests.fetch_add(1, std::memory_order_relaxed);
}

// (The request is made and dropped without the lock: while MPI makes it, MPI may wait for a thread
// that frees another request, which waits for the lock.)
Status PendingCalls::start(Team& team, const Algorithm& by, NonblockingCall& call) {
  if (!call.make_request()) return fail(team, {Code::internal, "MPI makes no request"});
  Status status = start_requested(team.halves().nonblocking(), by, call);
  if (!status.ok()) call.drop_request();
  return status;
}

Status PendingCalls::start_requested(NonblockingTeam& half, const Algorithm& by,
                                     NonblockingCall& call) try {
  const Lock lock(*this);
  if (Status status = begin(half, by, call); !status.ok()) return status;
  call.state_ = NonblockingCall::State::running;
  link(call);
  note_begun();
  return {};
} catch (const std::bad_alloc&) {
  return fail(half, process_.no_memory_for_call);
}

NonblockingTeam* PendingCalls::add(Team& team, FreeCells* free) {
  const Lock lock(*this);
  *free = team.halves().free_cells();
  return team.halves().add();
}

void PendingCalls::give_cells(Team& team, NonblockingTeam& part, uint32_t set) {
  const Lock lock(*this);
  team.halves().give_cells(part, set);
}

void PendingCalls::remove(Team& team, NonblockingTeam& part) {
  const Lock lock(*this);
  std::erase(teams_, &part);
  team.halves().remove(part);
  drop_idle_teams();
}

void PendingCalls::add(PersistentCall& call) {
  const Lock lock(*this);
  call.pending_ = this;
  link(call);
}

Status PendingCalls::start(PersistentCall& call) {
  const Lock lock(*this);
  const auto before = std::exchange(call.state_, NonblockingCall::State::running);
  Status status = begin(*call.part(), *call.algorithm(), call);
  if (status.ok()) {
    note_begun();
  } else {
    call.state_ = before;
  }
  return status;
}

// (Whoever sleeps does so on the number of calls that have not ended.)
uint32_t PendingCalls::await_calls() {
  if (moving_.load(std::memory_order_relaxed) == 0) {
    const timespec most{.tv_sec = 1, .tv_nsec = 0};
    syscall(SYS_futex, &moving_, FUTEX_WAIT_PRIVATE, 0, &most, nullptr, 0);
  }
  return drives_.load(std::memory_order_relaxed);
}

void PendingCalls::wake() {
  if (way_ == ProgressWay::thread)
    syscall(SYS_futex, &moving_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

Status PendingCalls::fail(Team& team, const Status& cause) try {
  const Lock lock(*this);
  return team.halves().nonblocking().fail_call(cause);
} catch (const std::bad_alloc&) {
  return cause;
}

Status PendingCalls::fail(NonblockingTeam& part, const Status& cause) {
  const Lock lock(*this);
  return part.fail_call(cause);
}

int PendingCalls::drive() {
  if (!try_lock()) return 0;
  NonblockingCall* ended = nullptr;
  {
    const Lock lock(*this, std::adopt_lock);
    advance_all();
    drives_.fetch_add(1, std::memory_order_relaxed);
    ended = collect_ended();
  }
  return complete(ended);
}

bool PendingCalls::move() {
  if (!try_lock()) return false;
  const Lock lock(*this, std::adopt_lock);
  return advance_all();
}

// True if there is more to do at once.
bool PendingCalls::advance_all() {
  constexpr int most_turns = 16;  // so that MPI goes on, too
  bool more = turn();
  for (int turns = 1; more && !ended_ && turns < most_turns; ++turns) more = turn();
  watch();
  std::erase_if(teams_, [](const NonblockingTeam* team) { return team->is_idle(); });
  return more;
}

bool PendingCalls::turn() {
  bool more = process_.endpoint->progress();
  for (NonblockingTeam* const team : teams_) more |= team->advance();
  return more;
}

NonblockingCall* PendingCalls::collect_ended() {
  if (!ended_) return nullptr;
  uint32_t number = 0;
  for (NonblockingCall* call = ended_; call; call = call->links_.next_ended) {
    call->state_ = NonblockingCall::State::completed;
    ++number;
  }
  completing_.fetch_add(number, std::memory_order_relaxed);
  if (running_.fetch_sub(number, std::memory_order_release) == number)
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
    ended->complete();
    ended = next;
  }
  if (completed > 0)
    completing_.fetch_sub(static_cast<uint32_t>(completed), std::memory_order_release);
  return completed;
}

// (Reading the clock takes as long as a turn.)
void PendingCalls::watch() {
  constexpr uint32_t between_looks = 64;
  if (++turns_ % between_looks != 0) return;
  const auto how_long = waited();
  for (NonblockingTeam* const team : teams_) team->watch(how_long);
}

constexpr auto closely = std::chrono::milliseconds(100);

// How long the program has waited for all that is in flight; zero if it does not.
PendingCalls::Clock::duration PendingCalls::waited() const {
  const auto now = Clock::now().time_since_epoch();
  const auto time = [](const std::atomic<Clock::rep>& since) {
    return Clock::duration(since.load(std::memory_order_relaxed));
  };
  if (waiting_.load(std::memory_order_relaxed) > 0) return now - time(waiting_since_);
  return now - time(tested_) < closely ? now - time(testing_since_) : Clock::duration(0);
}

void PendingCalls::note_test(bool has_completed) {
  const auto now = Clock::now().time_since_epoch();
  const auto before = Clock::duration(tested_.exchange(now.count(), std::memory_order_relaxed));
  if (has_completed || now - before >= closely)
    testing_since_.store(now.count(), std::memory_order_relaxed);
}

void PendingCalls::drop_idle_teams() {
  std::erase_if(teams_, [](const NonblockingTeam* team) { return team->is_idle(); });
  std::erase_if(adopted_, [](const std::unique_ptr<Team>& each) { return each->is_idle(); });
}

void PendingCalls::forget(NonblockingCall& call) {
  const Lock lock(*this);
  auto& links = call.links_;
  (links.previous ? links.previous->links_.next : live_) = links.next;
  if (links.next) links.next->links_.previous = links.previous;
  own_operations_.fetch_sub(call.has_own_operation(), std::memory_order_relaxed);
  live_requests.fetch_sub(1, std::memory_order_relaxed);
}

std::unique_ptr<Team> PendingCalls::adopt(std::unique_ptr<Team> team) {
  const Lock lock(*this);
  drop_idle_teams();
  if (team->is_idle()) return team;
  adopted_.push_back(std::move(team));
  return nullptr;
}

// (Calls that have failed are told of by this thread soon.)
void PendingCalls::note_freed(MPI_Comm comm) {
  for (NonblockingCall* call = this_thread.failed_calls; call; call = call->links_.next_failed) {
    if (call->comm_ == comm) call->comm_ = real().comm_null;
  }
  if (live_requests.load(std::memory_order_relaxed) == 0) return;
  const Lock lock(*this);
  for (NonblockingCall* call = live_; call; call = call->links_.next) {
    if (call->comm_ == comm) call->comm_ = real().comm_null;
  }
}

bool PendingCalls::has_calls_of(MPI_Comm comm) {
  const Lock lock(*this);
  const NonblockingCall* call = live_;
  while (call && (call->comm_ != comm || !call->is_in_flight())) call = call->links_.next;
  return call;
}

void PendingCalls::finish(MPI_Comm comm) {
  if (live_requests.load(std::memory_order_relaxed) == 0) return;
  Wait wait(*this);
  while (has_calls_of(comm)) {
    if (drive() > 0) continue;
    if (process_.progress_mpi) process_.progress_mpi();
    wait.give_way();
  }
}

// The number of the oldest live call with an operation of the program's.
uint64_t PendingCalls::oldest_own_operation() {
  const Lock lock(*this);
  uint64_t oldest = started_;
  for (const NonblockingCall* call = live_; call; call = call->links_.next) {
    if (call->has_own_operation()) oldest = std::min(oldest, call->number_);
  }
  return oldest;
}

// (An operation may need a lock that the caller has. So ours is taken only for calls with one.)
bool PendingCalls::defer(Deferred what) try {
  if (own_operations_.load(std::memory_order_relaxed) == 0) return false;
  {
    const Lock lock(*this);
    what.until = started_;
  }
  const std::lock_guard lock(deferred_.mutex);
  deferred_.all.push_back(what);
  deferred_.any.store(true, std::memory_order_relaxed);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// (MPI's functions call attribute callbacks, which may free more.)
void PendingCalls::free_deferred() {
  if (!deferred_.any.load(std::memory_order_relaxed)) return;
  const uint64_t oldest = oldest_own_operation();
  std::vector<Deferred> freed;
  {
    const std::lock_guard lock(deferred_.mutex);
    auto& all = deferred_.all;
    const auto later = std::partition(all.begin(), all.end(),
                                      [&](const Deferred& each) { return each.until > oldest; });
    freed.assign(later, all.end());
    all.erase(later, all.end());
    deferred_.any.store(!all.empty(), std::memory_order_relaxed);
  }
  for (Deferred& each : freed) {
    if (each.op != real().op_null) real().Op_free(&each.op);
    if (each.type != real().datatype_null) real().Type_free(&each.type);
  }
}

PendingCalls::Wait::Wait(PendingCalls& calls) : calls_(calls) {
  const auto now = Clock::now();
  calls.waiting_since_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  calls.waiting_.fetch_add(1, std::memory_order_relaxed);
  const int spin = calls.process_.knobs.spin;
  spins_until_ = spin < 0 ? Clock::time_point::max() : now + std::chrono::microseconds(spin);
}

// (Flags in an arena and messages on MPI's transports end no sleep, so it is short.)
void PendingCalls::Wait::give_way() {
  constexpr uint32_t between_looks = 8;
  constexpr timespec nap{.tv_sec = 0, .tv_nsec = 50'000};
  if (calls_.process_.oversubscription.is_there()) sched_yield();
  const bool may_sleep = spins_until_ != Clock::time_point::max();
  if (may_sleep && ++turns_ % between_looks == 0 && Clock::now() >= spins_until_)
    nanosleep(&nap, nullptr);
}

// Names requests that no wait or test of the program has completed.
bool PendingCalls::complain_of_live() {
  constexpr uint32_t most = 8;
  const Lock lock(*this);
  uint32_t all = 0;
  for (const NonblockingCall* call = live_; call; call = call->links_.next) {
    if (!call->is_owed() || ++all > most) continue;
    log(Level::error,
        "MPI_Finalize while %s of %zu bytes is in flight: the program has not waited for it",
        call->name(), call->call().bytes);
  }
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
  Wait wait(*this);
  const auto began = Clock::now();
  for (bool gives_up = false; any();) {
    if (drive() == 0 && process_.progress_mpi) process_.progress_mpi();
    if (!gives_up && (gives_up = Clock::now() - began > most)) fail_all();
  }
  if (has_begun) end_progress(way_);
}

}  // namespace sluice
