// SPDX-License-Identifier: BSD-3-Clause
//
// The start of an execution: its memory, and its channels.
#include <algorithm>
#include <new>

#include "src/engine/execution.h"

namespace sluice {

void Execution::set_call(const Schedule& schedule, const Call& call, size_t segment) {
  schedule_ = &schedule;
  plan_ = &schedule.plan();
  memory_.set_call(*plan_, call, segment);
}

DeviceNeeds Execution::measure(const Schedule& schedule, const Call& call, size_t segment) {
  set_call(schedule, call, segment);
  DeviceNeeds needs{.scratch = memory_.measure()};
  for (const Step& step : plan_->steps) needs.bounce += bounce_bytes(step);
  return needs;
}

Status Execution::start(const Schedule& schedule, const Call& call, uint32_t number, size_t segment,
                        Channels& channels) {
  set_call(schedule, call, segment);
  memory_.registrations().clear();
  number_ = number;
  signature_ = encode_signature(call.collective, call.root);
  unfinished_ = static_cast<uint32_t>(plan_->steps.size());
  status_ = {};
  failed_.is_here = false;
  if (Status status = lay_out(); !status.ok()) return status;
  if (Status status = connect(channels); !status.ok()) return status;
  enqueue_first();
  return {};
}

// (Nothing is left in its queues.)
bool Execution::restart(const Call& call, uint32_t number) {
  const bool is_done = repeats_ && schedule_ && status_.ok() && unfinished_ == 0;
  if (!is_done || call.device || !memory_.is_placed_for(call)) return false;
  number_ = number;
  unfinished_ = static_cast<uint32_t>(plan_->steps.size());
  for (Progress& progress : progress_) progress.started = progress.done = progress.unpacked = 0;
  enqueue_first();
  return true;
}

void Execution::enqueue_first() {
  for (uint32_t i = 0; i < plan_->steps.size(); ++i) {
    if (plan_->steps[i].after_count == 0) enqueue(i);
  }
}

// Sizes everything for this plan and call. Allocates all memory but what connect() takes.
Status Execution::lay_out() try {
  const size_t steps = plan_->steps.size();
  progress_.assign(steps, {});
  if (messages_.size() < steps * depth) messages_ = std::vector<Message>(steps * depth);
  for (StepQueue* queue : {&ready_, &packing_, &unpacking_}) queue->reset(steps);
  local_.clear();
  local_.reserve(steps);
  if (device()) copies_.reset(device(), steps * depth);
  if (Status status = memory_.place(); !status.ok()) return status;
  return place_steps();
} catch (const std::bad_alloc&) {
  return {Code::memory, "no memory for the state of a call"};
}

Status Execution::place_steps() {
  size_t gathered = 0, bounce = 0;
  for (size_t i = 0; i < progress_.size(); ++i) {
    const Step& step = plan_->steps[i];
    Progress& progress = progress_[i];
    progress.bytes = memory_.bytes_of(message_slice(step));
    progress.segments = static_cast<uint32_t>(std::max<size_t>(
        (progress.bytes + memory_.segment_bytes() - 1) / memory_.segment_bytes(), 1));
    progress.packs = step.kind == Kind::send && memory_.has(step.from, &View::source);
    progress.unpacks = step.settles && memory_.has(step.to, &View::sink);
    if (!is_message(step.kind)) continue;
    progress.gathered = static_cast<uint32_t>(gathered);
    gathered += size_t{depth} * message_slice(step).count;
    bounce += bounce_bytes(step);
  }
  gathered_.resize(gathered);
  std::byte* next = nullptr;
  if (device()) {
    next = device()->bounce(bounce);
  } else if (bounce_.reserve(bounce)) {
    next = bounce_.data();
  }
  if (!next && bounce > 0) {
    return {Code::memory, "no memory for " + std::to_string(bounce) + " bytes of segments"};
  }
  for (size_t i = 0; i < progress_.size(); ++i) {
    const size_t bytes = bounce_bytes(plan_->steps[i]);
    if (bytes == 0) continue;
    progress_[i].bounce = next;
    next += bytes;
  }
  return {};
}

Status Execution::connect(Channels& channels) {
  for (size_t i = 0; i < progress_.size(); ++i) {
    const Step& step = plan_->steps[i];
    if (!is_message(step.kind)) continue;
    Result<Channel*> channel = channels.channel(step.peer);
    if (!channel.ok()) {
      failed_.peer = step.peer;
      return channel.status();
    }
    progress_[i].channel = *channel;
  }
  return {};
}

// The size of a message's bounce buffer, `depth` segments. On the host, only a recv_reduce that
// overwrites its operand needs one.
size_t Execution::bounce_bytes(const Step& step) const {
  if (device() ? !is_message(step.kind) : !memory_.overwrites_operand(step)) return 0;
  return Scratch::aligned(
      std::min(memory_.bytes_of(message_slice(step)), depth * memory_.segment_bytes()));
}

}  // namespace sluice
