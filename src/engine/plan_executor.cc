// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/plan_executor.h"

#include <algorithm>

#include "src/engine/agreement.h"

namespace sluice {
namespace {

// Least bytes of a segment, if an algorithm wants many (Algorithm::segments). Shorter ones cost
// more than they gain.
constexpr size_t least_segment = 4096;

}  // namespace

// Bytes of a segment; equal on all ranks. Two ranks forward nothing, so longer segments save system
// calls (an allreduce of 4 MB over loopback TCP takes 0.75 of the time).
size_t PlanExecutor::segment_of(const Algorithm& algorithm, size_t bytes) const {
  const size_t knob = resources_.knobs.segment;
  const size_t wanted = resources_.size > 2 ? knob : 4 * knob;
  const size_t most = std::min(wanted, resources_.endpoint->caps().max_message);
  if (algorithm.segments == 1) return most;
  return std::min(most, std::max(bytes / algorithm.segments, least_segment));
}

void PlanExecutor::make_schedule(const Algorithm& algorithm, const Call& call) {
  const auto radix = static_cast<uint32_t>(resources_.knobs.radix);
  const Shape shape{resources_.rank, resources_.size, 0, radix, resources_.hosts};
  const Rank root = is_rooted(call.collective) ? call.root : 0;
  schedule_ = resources_.schedules.get(&algorithm, root, shape);
}

Status PlanExecutor::start_exchange(const Algorithm& algorithm, const Call& call, uint32_t tag) {
  make_schedule(algorithm, call);
  return execution_.start(*schedule_, call, tag, segment_of(algorithm, call.bytes),
                          resources_.channels);
}

DeviceNeeds PlanExecutor::measure(const Algorithm& algorithm, const Call& call) {
  make_schedule(algorithm, call);
  const size_t segment = segment_of(algorithm, call.bytes);
  const DeviceNeeds needs = execution_.measure(*schedule_, call, segment);
  schedule_.reset();
  return needs;
}

std::string PlanExecutor::awaited() const {
  const std::vector<Rank> ranks = execution_.waiting_for();
  const std::string on_ranks = ranks.empty() ? "" : describe_ranks(ranks);
  const DeviceWork* const device = execution_.awaited_device();
  if (!device) return on_ranks;
  return on_ranks + (ranks.empty() ? "" : " and ") + "work on " + device->name();
}

Executor::Failure PlanExecutor::failure() const {
  if (execution_.failed_here()) return {execution_.status(), {}};
  return {execution_.status(), execution_.failed_peer()};
}

}  // namespace sluice
