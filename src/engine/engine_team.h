// SPDX-License-Identifier: BSD-3-Clause
//
// The team (team.h). It has the order of calls and the sticky error; what else it needs is in
// classes of their own: selection, executors, calls in flight, failures, counts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/engine/alltoallv.h"
#include "src/engine/call_counts.h"
#include "src/engine/calls_in_flight.h"
#include "src/engine/cells_executor.h"
#include "src/engine/new_team.h"
#include "src/engine/plan_executor.h"
#include "src/engine/selection.h"
#include "src/engine/shm_executor.h"
#include "src/engine/team_channels.h"
#include "src/engine/team_failures.h"

namespace sluice {

class EngineTeam final : public NewTeam {
 public:
  EngineTeam(Process& process, std::string name, Rank rank, TeamId id, std::vector<Peer> peers,
             std::vector<uint32_t> hosts);
  ~EngineTeam() override;

  Status share(std::unique_ptr<Arena> arena) override;
  void use_outcomes() override { trials_.use(process_.outcomes, hosts_); }
  void apply(const Hints& hints) override;
  const TeamId& id() const override { return id_; }
  void set_id(const TeamId& id) override {
    id_ = id;
    channels_.set_id(id);
  }
  void set_communicator(uint64_t group_fingerprint, bool sees_devices) override {
    communicator_ = {group_fingerprint, sees_devices};
  }
  uint64_t group_fingerprint() const override { return communicator_.group_fingerprint; }
  bool retire() override;
  void serve(const std::string& name) override;
  Rank rank() const override { return rank_; }
  Rank size() const override { return channels_.size(); }
  const Algorithm* choose(const Call& call) override {
    return selection_.choose(call, can_use_shm(call));
  }
  Status find_way(const Call& call, const CarrierSet& able, Way* way) override;
  void abandon_trial_memory() override { trials_.abandon_memory(); }
  void count_mpi(Collective collective, size_t bytes, Way::Clock::time_point began) override;
  Status run_by(const Algorithm& algorithm, const Call& call) override;
  DeviceNeeds measure(const Algorithm& algorithm, const Call& call) override {
    return plan_.measure(algorithm, call);
  }
  Status run_with(Executor& executor, const Algorithm& name, const Call& call) override;
  void count(const Algorithm& name, const Call& call, Way::Clock::time_point began) override;
  using Team::exchange;
  Status exchange(const Call& before, std::span<const std::byte> mine, std::span<std::byte> all,
                  std::vector<ExchangeTimes>* times) override;
  Say say_of(const Call& call, Carrier carrier) override;
  bool spans_hosts() const override { return count_hosts(hosts_) > 1; }
  bool sees_devices() const override { return communicator_.sees_devices; }
  const ProcessId& process(Rank rank) const override { return channels_.process(rank); }
  Status fail_call(const Status& cause) override;
  Result<CallInFlight*> start(const Call& call) override;
  bool has_ended(CallInFlight& call) override;
  Status finish(CallInFlight& call) override;

 private:
  using Clock = Waiter::Clock;
  class LongBlocksByLinks;

  bool can_use_shm(const Call& call) const { return shm_ && fits_slot(call.element, size()); }
  void begin(const Call& call);
  Status end(const Status& status);
  [[gnu::cold]] const Algorithm* choose_without_slots(const Call& call);
  [[gnu::noinline]] const Algorithm* see_to_slots(const Algorithm& algorithm, const Call& call);
  [[gnu::noinline]] Status run_otherwise(const Algorithm& algorithm, const Call& call);
  Status execute(const Algorithm& algorithm, const Call& call);
  Status execute(Executor& by, const Algorithm& algorithm);
  [[gnu::cold]] Status break_by_shm(const Call& call);
  Status exchange_piece(const Call& before, std::span<const std::byte> mine,
                        std::span<std::byte> all);
  Status start(CallInFlight& call, const Algorithm& algorithm);
  bool advance(CallInFlight& call);
  void advance_all();
  Status wait(CallInFlight& call);
  Status wait_for_copy(const IsDone& is_done, const std::string& what) override;
  Status check_wait(CallInFlight& call);
  Status watch(CallInFlight& call, std::chrono::nanoseconds waited, const auto& what);
  Status watch_arena(std::chrono::nanoseconds waited, Rank peer);
  [[gnu::cold]] Status break_team(const Status& cause, const CallInFlight& call);
  bool tell(const Status& cause, const CallInFlight& call);
  [[gnu::cold]] Status break_team(const Status& cause) { return break_team(cause, blocking_); }
  void cancel_all();
  std::string describe(const CallInFlight& call) const;
  void watch_call(const Algorithm& algorithm, const Call& call, Clock::time_point began);
  void settle_accounts();

  Process& process_;
  const bool is_watched_;  // calls are counted, or delayed
  std::string name_;
  const Rank rank_;
  TeamId id_;
  struct {
    uint64_t group_fingerprint = 0;
    bool sees_devices = false;
  } communicator_;
  const std::vector<uint32_t> hosts_;  // as in Shape
  TeamChannels channels_;
  Waiter waiter_;
  Selection selection_;
  Trials trials_;
  uint32_t number_ = 0;   // of the last call
  uint32_t earlier_ = 0;  // calls of earlier communicators
  Status broken_;
  CallInFlight blocking_;  // that `run_by` runs
  ScheduleCache schedules_;
  PlanResources resources_;
  CallsInFlight in_flight_;
  PlanExecutor plan_;  // these are for `blocking_`
  CellsExecutor cells_;
  std::unique_ptr<OverLinks> links_;
  std::optional<ShmExecutor> shm_;  // with an arena
  TeamFailures failures_;
  CallCounts counts_;  // if calls are counted
  Delay delay_;
};

}  // namespace sluice
