// SPDX-License-Identifier: BSD-3-Clause
//
// A part of a team that runs calls in flight, by plans over links or, if short, through cells of
// the team's arena: the non-blocking collectives, which MPI never matches with blocking ones; or
// those of one persistent request, whose starts MPI matches with nothing else. It has channels and
// an order of calls of its own, so whoever advances it disturbs no call that blocks. With an arena
// all parts of a team fail together. One thread at a time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "src/engine/call_counts.h"
#include "src/engine/calls_in_flight.h"
#include "src/engine/team_channels.h"
#include "src/engine/team_failures.h"
#include "src/engine/waiter.h"

namespace sluice {

// The team that it is a part of, which outlives it. name: of the communicator, may change; shm:
// what the team has of shared memory; hosts: as in Shape.
struct WholeTeam {
  Process& process;
  const std::string& name;
  Rank rank;
  const TeamChannels& channels;
  std::optional<ShmExecutor>& shm;
  const std::vector<uint32_t>& hosts;
};

class NonblockingTeam {
 public:
  // Makes no connection. part: TeamId::part; cells: for its short calls, nullptr if it has none;
  // request: which of the communicator's persistent requests it is of, from 1; 0: of none. May
  // throw std::bad_alloc.
  NonblockingTeam(const WholeTeam& of, uint16_t part, Cells* cells, uint32_t request = 0);
  NonblockingTeam(const NonblockingTeam&) = delete;
  NonblockingTeam& operator=(const NonblockingTeam&) = delete;

  // Starts a call, by the algorithm that Team::choose_nonblocking names: posts its first messages,
  // and returns at once. Ranks start the calls of a team in one order. What `call` points to, and
  // the call itself, must stay valid until the owner has been told of its end, which happens in
  // `advance`. An error: the owner is told nothing. Errors are sticky, and end all calls in flight;
  // the peers are told.
  Status start(const Algorithm& algorithm, const Call& call, CallOwner& owner);
  // Advances all calls; moves no bytes (Endpoint::progress does). Never waits for other ranks. True
  // if local work is left, for the next time.
  bool advance();
  bool is_idle() const { return calls_.empty(); }
  // To be called now and then: whether other ranks have failed. waited: how long this rank has
  // waited for calls to end; zero if it does something else. Reports late ranks, and fails at the
  // deadline.
  void watch(std::chrono::nanoseconds waited);
  // As Team::fail_call: in place of `start`.
  Status fail_call(const Status& cause);

  // Has its later short calls go through these cells, which no other part uses.
  void use(Cells& cells) { calls_.use(cells); }

  // These are for the team, whose half it is. Hands its counts over.
  void settle_accounts(const CountedTeam& team);
  // The communicator was freed. False if it can't serve another. Nothing may be in flight.
  bool retire();
  void serve() { earlier_ = number_; }

 private:
  static void advance_new(CallInFlight& call);
  bool has_ended(CallInFlight& call);
  CallInFlight& least_watchful() const;
  Status break_by(const Status& cause, const CallInFlight* call);
  bool tell(const Status& cause, const CallInFlight* call);
  std::string describe(const CallInFlight& call) const;

  Process& process_;
  const std::string& name_;
  const uint32_t request_;
  TeamChannels channels_;
  Waiter waiter_;
  PlanResources resources_;
  uint32_t number_ = 0;   // of the last call
  uint32_t earlier_ = 0;  // calls of earlier communicators
  Status broken_;
  CallsInFlight calls_;
  TeamFailures failures_;
  CallCounts counts_;
};

}  // namespace sluice
