// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a call by an algorithm's plan, over links.
#pragma once

#include <string>
#include <vector>

#include "src/base/knobs.h"
#include "src/engine/executor.h"
#include "src/engine/schedule.h"
#include "transports/transport.h"

namespace sluice {

// What the plan executors of a team share.
struct PlanResources {
  const Knobs& knobs;
  Endpoint* endpoint;
  Channels& channels;
  const Rank rank, size;
  const std::vector<uint32_t> hosts;  // as in Shape
  ScheduleCache schedules = {};
  // Whether each call is like the last one, mostly on the same memory: they are a persistent
  // request's.
  bool repeats = false;
};

class PlanExecutor final : public Executor {
 public:
  explicit PlanExecutor(PlanResources& resources)
      : resources_(resources), execution_(resources.repeats) {}

  Status start(const Algorithm& algorithm, const Call& call, uint32_t number) override {
    const uint32_t tag = number & ~Tag::second_exchange;
    return execution_.restart(call, tag) ? Status() : start_exchange(algorithm, call, tag);
  }
  // Starts one exchange of a call. tag: Tag::call.
  Status start_exchange(const Algorithm& algorithm, const Call& call, uint32_t tag);
  // What a call with a device will need of it. Between calls only; may throw std::bad_alloc.
  DeviceNeeds measure(const Algorithm& algorithm, const Call& call);
  State advance() override {
    const State state = execution_.advance();
    if (state == State::done && !resources_.repeats) schedule_.reset();
    return state;
  }
  Failure failure() const override;
  void cancel() override {
    execution_.cancel();
    schedule_.reset();
  }
  std::string awaited() const override;
  void trim() override { execution_.trim(); }

 private:
  void make_schedule(const Algorithm& algorithm, const Call& call);
  size_t segment_of(const Algorithm& algorithm, size_t bytes) const;

  PlanResources& resources_;
  SchedulePin schedule_;
  Execution execution_;
};

}  // namespace sluice
