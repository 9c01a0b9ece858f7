// SPDX-License-Identifier: BSD-3-Clause
//
// The start of an execution: its memory, and its channels.
#include <algorithm>
#include <new>

#include "src/engine/execution.h"

namespace sluice {
namespace {

constexpr size_t alignment = 64;

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

void Scratch::Free::operator()(std::byte* data) const {
  ::operator delete(data, std::align_val_t(alignment));
}

bool Scratch::reserve(size_t bytes) {
  if (bytes <= bytes_) return true;
  data_.reset();
  bytes_ = 0;
  void* data = ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
  if (!data) return false;
  data_.reset(static_cast<std::byte*>(data));
  bytes_ = bytes;
  return true;
}

void Execution::set_call(const Schedule& schedule, const Call& call, size_t segment) {
  schedule_ = &schedule;
  plan_ = &schedule.plan();
  call_ = call;
  segment_bytes_ = std::max<size_t>(segment / call.element, 1) * call.element;
}

// (Only sizes are looked at, so scratch may be anywhere.)
DeviceNeeds Execution::measure(const Schedule& schedule, const Call& call, size_t segment) {
  set_call(schedule, call, segment);
  DeviceNeeds needs{.scratch = size_scratch()};
  resolve_pieces(reinterpret_cast<std::byte*>(alignment));
  for (const Step& step : plan_->steps) needs.bounce += bounce_bytes(step);
  return needs;
}

Status Execution::start(const Schedule& schedule, const Call& call, uint32_t number, size_t segment,
                        Channels& channels) {
  set_call(schedule, call, segment);
  number_ = number;
  signature_ = encode_signature(call.collective, call.root);
  unfinished_ = static_cast<uint32_t>(plan_->steps.size());
  status_ = {};
  failed_here_ = false;
  if (Status status = lay_out(); !status.ok()) return status;
  if (Status status = connect(channels); !status.ok()) return status;
  for (uint32_t i = 0; i < plan_->steps.size(); ++i) {
    if (plan_->steps[i].after_count == 0) enqueue(i);
  }
  return {};
}

// Sizes everything for this plan and call. Allocates all memory but what connect() takes.
Status Execution::lay_out() try {
  const size_t steps = plan_->steps.size();
  progress_.assign(steps, {});
  if (messages_.size() < steps * depth) messages_ = std::vector<Message>(steps * depth);
  for (StepQueue* queue : {&ready_, &packing_, &unpacking_}) queue->reset(steps);
  staged_ = call_.input.source || call_.output.source || call_.output.sink;
  local_.clear();
  local_.reserve(steps);
  if (call_.device) copies_.reset(call_.device, steps * depth);
  if (Status status = place_scratch(); !status.ok()) return status;
  return place_steps();
} catch (const std::bad_alloc&) {
  return {Code::memory, "no memory for the state of a call"};
}

// Sets the offsets of slots. The bytes of all; a device also needs a segment for what is received
// into its own operand. (One is enough, as the device works in order.)
size_t Execution::size_scratch() {
  slots_.clear();
  size_t bytes = 0;
  for (const Piece& like : plan_->scratch) {
    slots_.push_back(bytes);
    const size_t count = view(like.area).block(like.block).count;
    bytes += aligned(cut(count, like.part).count * call_.element);
  }
  return call_.device ? bytes + segment_bytes_ : bytes;
}

Status Execution::place_scratch() {
  const size_t bytes = size_scratch();
  std::byte* scratch = nullptr;
  if (call_.device) {
    scratch = call_.device->scratch(bytes);
  } else if (scratch_.reserve(bytes)) {
    scratch = scratch_.data();
  }
  if (!scratch && bytes > 0) {
    return {Code::memory, "no memory for " + std::to_string(bytes) + " bytes of scratch"};
  }
  if (call_.device) operand_ = scratch + bytes - segment_bytes_;
  resolve_pieces(scratch);
  return {};
}

void Execution::resolve_pieces(std::byte* scratch) {
  runs_.resize(plan_->pieces.size());
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Piece& piece = plan_->pieces[i];
    if (piece.area == Area::scratch) {
      const Piece& like = plan_->scratch[piece.block];
      const size_t count = cut(view(like.area).block(like.block).count, like.part).count;
      const Range range = cut(count, piece.part);
      runs_[i] = {scratch + slots_[piece.block] + range.first * call_.element,
                  range.count * call_.element};
      continue;
    }
    const View::Extent block = view(piece.area).block(piece.block);
    const Range range = cut(block.count, piece.part);
    runs_[i] = {view(piece.area).base + (block.offset + range.first) * call_.element,
                range.count * call_.element};
  }
}

Status Execution::place_steps() {
  size_t gathered = 0, bounce = 0;
  for (size_t i = 0; i < progress_.size(); ++i) {
    const Step& step = plan_->steps[i];
    Progress& progress = progress_[i];
    progress.bytes = slice_bytes(message_slice(step));
    progress.segments = static_cast<uint32_t>(
        std::max<size_t>((progress.bytes + segment_bytes_ - 1) / segment_bytes_, 1));
    progress.packs = step.kind == Kind::send && touches(step.from, &View::source);
    progress.unpacks = step.settles && touches(step.to, &View::sink);
    if (!is_message(step.kind)) continue;
    progress.gathered = static_cast<uint32_t>(gathered);
    gathered += size_t{depth} * message_slice(step).count;
    bounce += bounce_bytes(step);
  }
  gathered_.resize(gathered);
  std::byte* next = nullptr;
  if (call_.device) {
    next = call_.device->bounce(bounce);
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
      failed_peer_ = step.peer;
      return channel.status();
    }
    progress_[i].channel = *channel;
  }
  return {};
}

size_t Execution::slice_bytes(const Slice& slice) const {
  size_t bytes = 0;
  for (uint32_t i = 0; i < slice.count; ++i) bytes += runs_[slice.first + i].size;
  return bytes;
}

// The size of a message's bounce buffer, `depth` segments. On the host, only a recv_reduce that
// overwrites its operand needs one.
size_t Execution::bounce_bytes(const Step& step) const {
  if (call_.device ? !is_message(step.kind) : !overwrites_operand(step)) return 0;
  return aligned(std::min(slice_bytes(message_slice(step)), depth * segment_bytes_));
}

bool Execution::touches(const Slice& slice, Packing* View::*way) const {
  if (!staged_) return false;
  const auto pieces = plan_->of(slice);
  return std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return piece.area != Area::scratch && view(piece.area).*way;
  });
}

}  // namespace sluice
