// SPDX-License-Identifier: BSD-3-Clause
//
// The team (team.h). It has the order of calls and the sticky error; what else it needs is in
// classes of their own: who does a call, executors, failures, counts, calls in flight.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/engine/alltoallv.h"
#include "src/engine/call_counts.h"
#include "src/engine/cells_executor.h"
#include "src/engine/decider.h"
#include "src/engine/new_team.h"
#include "src/engine/plan_executor.h"
#include "src/engine/shm_executor.h"
#include "src/engine/team_channels.h"
#include "src/engine/team_failures.h"
#include "src/engine/team_halves.h"

namespace sluice {

class EngineTeam final : public NewTeam {
 public:
  EngineTeam(Process& process, std::string name, Rank rank, TeamId id, std::vector<Peer> peers,
             std::vector<uint32_t> hosts);
  ~EngineTeam() override { settle_accounts(); }

  Status share(std::unique_ptr<Arena> arena) override;
  void use_outcomes() override { decider_.trials().use(process_.outcomes); }
  void apply(const Hints& hints) override;
  const TeamId& id() const override { return channels_.id(); }
  void set_id(const TeamId& id) override { channels_.set_id(id); }
  void set_communicator(uint64_t group_fingerprint, bool sees_devices) override {
    communicator_ = {group_fingerprint, sees_devices};
  }
  uint64_t group_fingerprint() const override { return communicator_.group_fingerprint; }
  bool retire() override;
  void serve(const std::string& name) override;
  Rank rank() const override { return rank_; }
  Rank size() const override { return channels_.size(); }
  const Algorithm* choose(const Call& call) override {
    return decider_.selection().choose(call, can_use_shm(call));
  }
  Status find_way(const Call& call, const CarrierSet& able, Way* way) override;
  void abandon_trial_memory() override { decider_.trials().abandon_memory(); }
  Status run_by(const Algorithm& algorithm, const Call& call) override;
  DeviceNeeds measure(const Algorithm& algorithm, const Call& call) override {
    return plan_.measure(algorithm, call);
  }
  Status run_with(Executor& executor, const Algorithm& name, const Call& call) override;
  void count(const Algorithm& name, const Call& call, Way::Clock::time_point began) override {
    if (counts_.are_on()) counts_.add(name, call, size(), began);
  }
  using Team::exchange;
  Status exchange(const Call& before, std::span<const std::byte> mine, std::span<std::byte> all,
                  std::vector<ExchangeTimes>* times) override;
  Say say_of(const Call& call, Carrier carrier) override {
    return decider_.say_of(call, can_use_shm(call), carrier);
  }
  bool goes_without(const CarrierSet& able, const Call& call) override {
    return decider_.goes_without(able, call, can_use_shm(call));
  }
  bool spans_hosts() const override { return count_hosts(resources_.hosts) > 1; }
  bool sees_devices() const override { return communicator_.sees_devices; }
  const ProcessId& process(Rank rank) const override { return channels_.process(rank); }
  Status fail_call(const Status& cause) override;
  using Team::choose_nonblocking;
  const Algorithm* choose_nonblocking(const Call& call, bool has_cells) override;
  TeamHalves& halves() override { return halves_; }
  bool is_idle() const override { return halves_.is_idle(); }

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
  Status wait(CallInFlight& call);
  Status wait_for_copy(const IsDone& is_done, const std::string& what) override;
  Status check_wait(CallInFlight& call);
  Status watch(CallInFlight& call, std::chrono::nanoseconds waited, const auto& what);
  Status watch_arena(std::chrono::nanoseconds waited, Rank peer);
  [[gnu::cold]] Status break_team(const Status& cause, const CallInFlight& call);
  bool tell(const Status& cause, const CallInFlight& call);
  [[gnu::cold]] Status break_team(const Status& cause) { return break_team(cause, blocking_); }
  std::string describe(const CallInFlight& call) const;
  void hand_over_counts() override;
  void settle_accounts();

  Process& process_;
  std::string name_;
  const Rank rank_;
  struct {
    uint64_t group_fingerprint = 0;
    bool sees_devices = false;
  } communicator_;
  TeamChannels channels_;
  Waiter waiter_;
  PlanResources resources_;
  Decider decider_;
  uint32_t number_ = 0;   // of the last call
  uint32_t earlier_ = 0;  // calls of earlier communicators
  Status broken_;
  CallInFlight blocking_;  // that `run_by` runs
  PlanExecutor plan_;      // these are for `blocking_`
  CellsExecutor cells_;
  std::unique_ptr<OverLinks> links_;
  std::optional<ShmExecutor> shm_;  // with an arena
  TeamFailures failures_;
  CallCounts counts_;
  TeamHalves halves_;
};

}  // namespace sluice
