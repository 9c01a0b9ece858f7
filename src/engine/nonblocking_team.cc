// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/nonblocking_team.h"

#include <new>
#include <utility>

#include "src/engine/agreement.h"
#include "src/engine/execution.h"

namespace sluice {

// (Whoever waits lets MPI progress himself.)
NonblockingTeam::NonblockingTeam(const WholeTeam& of, uint16_t part, Cells* cells, uint32_t request)
    : process_(of.process),
      name_(of.name),
      request_(request),
      channels_(of.channels, part),
      waiter_(process_.endpoint.get(), {}, process_.knobs.spin, process_.oversubscription),
      resources_{process_.knobs, process_.endpoint.get(), channels_,
                 of.rank,        channels_.size(),        of.hosts},
      calls_(resources_, cells, of.shm ? of.shm->make_cma() : nullptr),
      failures_(of.rank, channels_, waiter_, of.shm, process_),
      counts_(process_.knobs, process_.delay, ClassCounts::Kind::nonblocking, waiter_,
              channels_.size()) {
  resources_.repeats = request > 0;
}

Status NonblockingTeam::start(const Algorithm& algorithm, const Call& call, CallOwner& owner) try {
  if (!broken_.ok()) return broken_;
  CallInFlight& started = calls_.add(algorithm, call);
  started.number = ++number_;
  started.owner = &owner;
  started.began = counts_.begin();
  Status status;
  try {
    status = started.by->start(algorithm, call, started.number);
  } catch (const std::bad_alloc&) {
    status = process_.no_memory_for_call;
  }
  if (status.ok()) return advance_new(started), Status();
  status = break_by(status, &started);
  calls_.remove_if([&](const CallInFlight& call) { return &call == &started; },
                   [](const CallInFlight&) {});
  return status;
} catch (const std::bad_alloc&) {
  return fail_call(process_.no_memory_for_call);
}

// (A failure is found again, and told, when all calls are advanced.)
void NonblockingTeam::advance_new(CallInFlight& call) try {
  call.state = call.by->advance();
} catch (const std::bad_alloc&) {
}

// Whether the call has ended: it is done, or the team is broken.
bool NonblockingTeam::has_ended(CallInFlight& call) try {
  if (!broken_.ok() || call.state == Executor::State::done) return true;
  if (call.state != Executor::State::failed) call.state = call.by->advance();
  // (A rank that gave up may have changed its memory before it was read.)
  const bool is_doubtful = call.get && failures_.is_aborted_in_arena();
  if (call.state != Executor::State::failed && !is_doubtful)
    return call.state == Executor::State::done;
  (void)break_by(failures_.why_failed(call), &call);
  return true;
} catch (const std::bad_alloc&) {
  (void)break_by(process_.no_memory_for_call, &call);
  return true;
}

bool NonblockingTeam::advance() {
  bool is_busy = false;
  bool has_room = true;  // in the cells: calls write there in their order
  const auto ended = [&](CallInFlight& call) {
    if (call.flat && !has_room && broken_.ok() && call.state == Executor::State::waiting) {
      return false;
    }
    const bool ended = has_ended(call);
    has_room &= ended || !call.flat || call.flat->has_written();
    is_busy |= call.state == Executor::State::busy;
    return ended;
  };
  const auto tell_owner = [this](const CallInFlight& ended) {
    counts_.add(*ended.algorithm, *ended.call, resources_.size, ended.began);
    const bool is_done = ended.state == Executor::State::done;
    if (ended.owner) ended.owner->ended(is_done ? Status() : broken_);
  };
  calls_.remove_if(ended, tell_owner);
  return is_busy;
}

void NonblockingTeam::watch(std::chrono::nanoseconds waited) try {
  if (calls_.empty() || !broken_.ok()) return;
  waiter_.read_clock();
  if (Status status = failures_.find_failure(least_watchful()); !status.ok()) {
    return void(break_by(status, nullptr));
  }
  for (const auto& call : calls_) {
    Status status;
    if (waited.count() > 0) {
      status = failures_.watch(
          *call, waited, [&] { return call->by->awaited(); }, [&] { return describe(*call); });
    }
    if (!status.ok()) return void(break_by(status, call.get()));
  }
} catch (const std::bad_alloc&) {
  (void)break_by(process_.no_memory_for_call, nullptr);
}

// The call for which ranks are looked after: the first that does not notice death by itself.
CallInFlight& NonblockingTeam::least_watchful() const {
  for (const auto& call : calls_) {
    if (!call->by->notices_death()) return *call;
  }
  return **calls_.begin();
}

Status NonblockingTeam::fail_call(const Status& cause) {
  if (!broken_.ok()) return broken_;
  ++number_;
  return break_by(cause, nullptr);
}

std::string NonblockingTeam::describe(const CallInFlight& call) const {
  const std::string which = std::to_string(call.number - earlier_);
  return describe_signature(encode_signature(call.call->collective, call.call->root)) +
         (request_ > 0 ? " (start " + which + " of persistent request " + std::to_string(request_)
                       : " (non-blocking call " + which) +
         " on " + name_ + ")";
}

// Tells all ranks why this one gives up. False if it lacks the memory for that.
bool NonblockingTeam::tell(const Status& cause, const CallInFlight* call) try {
  const bool passes_on = cause.code() == Code::aborted;
  broken_ = passes_on || !call ? cause : cause.with(describe(*call));
  const std::string own = "rank " + std::to_string(resources_.rank) + ": ";
  return failures_.tell((passes_on ? "" : own) + broken_.message(), passes_on);
} catch (const std::bad_alloc&) {
  return false;
}

// Withdraws posted operations, and tells the peers. call: the one that failed; null: none has.
Status NonblockingTeam::break_by(const Status& cause, const CallInFlight* call) {
  if (cause.code() == Code::memory) process_.reserve.release();
  for (const auto& each : calls_) {
    if (each) each->by->cancel();  // (null: it has just ended, and is being taken off the list)
  }
  broken_ = cause;
  if (tell(cause, call)) return broken_;
  process_.reserve.release();
  (void)tell(cause, call);
  return broken_;
}

void NonblockingTeam::settle_accounts(const CountedTeam& team) {
  CountedTeam half = team;
  half.links = channels_.carrier();
  if (!counts_.empty()) counts_.hand_over(half, &process_.statistics);
}

bool NonblockingTeam::retire() {
  calls_.trim();
  return broken_.ok() && calls_.empty();
}

}  // namespace sluice
