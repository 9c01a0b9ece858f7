// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/execution.h"

#include <algorithm>
#include <new>
#include <utility>

#include "src/base/copy.h"

namespace sluice {
namespace {

constexpr size_t alignment = 64;

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

bool is_message(Kind kind) {
  return kind == Kind::send || kind == Kind::recv || kind == Kind::recv_reduce;
}

}  // namespace

std::string describe_signature(uint32_t signature) {
  const auto collective = static_cast<Collective>(signature & 15);
  if ((signature & 15) >= collective_count) return "something unknown";
  if (const Rank root = signature >> 4; root >= Call::exchange_root) {
    const auto preceded = static_cast<Collective>(root - Call::exchange_root);
    return "the vote before a large " + std::string(to_string(preceded));
  }
  std::string text(to_string(collective));
  if (is_rooted(collective)) text += " with root " + std::to_string(signature >> 4);
  return text;
}

Status describe_mismatch(const Claim& expected, const Claim& theirs) {
  if (theirs.signature != expected.signature) {
    return {Code::mismatch, "it is in " + describe_signature(theirs.signature) +
                                " while this rank is in " + describe_signature(expected.signature)};
  }
  return {Code::mismatch, "it sends " + std::to_string(theirs.bytes) +
                              " bytes where this rank expects " + std::to_string(expected.bytes) +
                              ": counts or datatypes differ"};
}

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

Status Execution::start(const Schedule& schedule, const Call& call, uint32_t number, size_t segment,
                        Channels& channels) {
  schedule_ = &schedule;
  plan_ = &schedule.plan();
  call_ = call;
  number_ = number;
  signature_ = encode_signature(call.collective, call.root);
  segment_bytes_ = std::max<size_t>(segment / call.element, 1) * call.element;
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
  if (Status status = place_scratch(); !status.ok()) return status;
  resolve_pieces();
  return place_steps();
} catch (const std::bad_alloc&) {
  return {Code::memory, "no memory for the state of a call"};
}

Status Execution::place_scratch() {
  slots_.clear();
  size_t bytes = 0;
  for (const Piece& like : plan_->scratch) {
    slots_.push_back(bytes);
    const size_t count = view(like.area).block(like.block).count;
    bytes += aligned(cut(count, like.part).count * call_.element);
  }
  if (scratch_.reserve(bytes)) return {};
  return {Code::memory, "no memory for " + std::to_string(bytes) + " bytes of scratch"};
}

void Execution::resolve_pieces() {
  runs_.resize(plan_->pieces.size());
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Piece& piece = plan_->pieces[i];
    if (piece.area == Area::scratch) {
      const Piece& like = plan_->scratch[piece.block];
      const size_t count = cut(view(like.area).block(like.block).count, like.part).count;
      const Range range = cut(count, piece.part);
      runs_[i] = {scratch_.data() + slots_[piece.block] + range.first * call_.element,
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
  if (!bounce_.reserve(bounce)) {
    return {Code::memory, "no memory for " + std::to_string(bounce) + " bytes of segments"};
  }
  bounce = 0;
  for (size_t i = 0; i < progress_.size(); ++i) {
    const size_t bytes = bounce_bytes(plan_->steps[i]);
    if (bytes > 0) progress_[i].bounce = bounce_.data() + bounce;
    bounce += bytes;
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

const Slice& Execution::message_slice(const Step& step) const {
  return step.kind == Kind::send ? step.from : step.to;
}

size_t Execution::slice_bytes(const Slice& slice) const {
  size_t bytes = 0;
  for (uint32_t i = 0; i < slice.count; ++i) bytes += runs_[slice.first + i].size;
  return bytes;
}

// The size of a recv_reduce's bounce buffer. None if its result does not overwrite its operand: it
// receives into the result's place. Otherwise `depth` segments.
size_t Execution::bounce_bytes(const Step& step) const {
  if (step.kind != Kind::recv_reduce || step.to.count == 0) return 0;
  if (runs_[step.from.first].data != runs_[step.to.first].data) return 0;
  return aligned(std::min(slice_bytes(step.to), depth * segment_bytes_));
}

bool Execution::touches(const Slice& slice, Packing* View::*way) const {
  if (!staged_) return false;
  const auto pieces = plan_->of(slice);
  return std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return piece.area != Area::scratch && view(piece.area).*way;
  });
}

Execution::State Execution::advance() {
  drain();
  run_ready();
  const bool busy = status_.ok() && run_work();
  if (!status_.ok()) return State::failed;
  if (busy) return State::busy;
  return unfinished_ == 0 ? State::done : State::waiting;
}

// Handles the operations that the transport has completed, oldest first.
void Execution::drain() {
  Operation* oldest = nullptr;
  for (Operation* latest = completed_.take(); latest;) {
    Operation* next = latest->next;
    latest->next = oldest;
    oldest = latest;
    latest = next;
  }
  while (oldest) {
    Operation* next = oldest->next;
    complete(static_cast<Message*>(oldest));
    oldest = next;
  }
}

void Execution::run_ready() {
  while (!ready_.empty() && status_.ok()) {
    const uint32_t index = ready_.front();
    ready_.pop();
    progress_[index].queued = false;
    try_step(index);
  }
}

// Does local work, about one segment at a time so that the network does not wait. First comes what
// other ranks wait for. True if some is left.
bool Execution::run_work() {
  size_t budget = segment_bytes_;
  return pack_some(budget) || compute_some(budget) || unpack_some(budget);
}

bool Execution::pack_some(size_t& budget) {
  while (!packing_.empty() && status_.ok()) {
    const uint32_t index = packing_.front();
    Progress& progress = progress_[index];
    if (!may_post(index)) {
      packing_.pop();
      progress.queued = false;
      continue;
    }
    const size_t bytes = segment_size(progress, progress.started);
    if (bytes > budget) return true;
    budget -= bytes;
    move(plan_->steps[index].from, segment_begin(progress.started), bytes, &View::source);
    if (!status_.ok()) return false;
    start_segment(index);
    run_ready();
  }
  return false;
}

bool Execution::compute_some(size_t& budget) {
  while (!local_.empty()) {
    const uint32_t index = local_.back();
    Progress& progress = progress_[index];
    const Step& step = plan_->steps[index];
    if (progress.done == progress.segments || !may_start(step, progress.done)) {
      local_.pop_back();
      progress.queued = false;
      continue;
    }
    const size_t bytes = segment_size(progress, progress.done);
    if (bytes > budget) return true;
    budget -= bytes;
    compute(step, progress, progress.done);
    if (!status_.ok()) return false;
    complete_segment(index);
    run_ready();
    if (!status_.ok()) return false;
    if (!packing_.empty()) return true;
  }
  return false;
}

bool Execution::unpack_some(size_t& budget) {
  while (!unpacking_.empty()) {
    const uint32_t index = unpacking_.front();
    Progress& progress = progress_[index];
    if (progress.unpacked == progress.done) {
      unpacking_.pop();
      progress.unpacking = false;
      continue;
    }
    const size_t bytes = segment_size(progress, progress.unpacked);
    if (bytes > budget) return true;
    budget -= bytes;
    move(plan_->steps[index].to, segment_begin(progress.unpacked++), bytes, &View::sink);
  }
  return false;
}

void Execution::enqueue(uint32_t step) {
  Progress& progress = progress_[step];
  if (progress.queued) return;
  progress.queued = true;
  if (!is_message(plan_->steps[step].kind)) {
    local_.push_back(step);
  } else {
    (progress.packs ? packing_ : ready_).push(step);
  }
}

bool Execution::may_start(const Step& step, uint32_t segment) const {
  for (const After& after : plan_->after_of(step)) {
    const Progress& earlier = progress_[after.step];
    if (after.pipelined ? earlier.done <= segment : earlier.done < earlier.segments) return false;
  }
  return true;
}

bool Execution::may_post(uint32_t index) const {
  const Progress& progress = progress_[index];
  return progress.started < progress.segments && progress.started - progress.done < depth &&
         may_start(plan_->steps[index], progress.started);
}

void Execution::try_step(uint32_t index) {
  while (status_.ok() && may_post(index)) start_segment(index);
}

void Execution::start_segment(uint32_t index) {
  Progress& progress = progress_[index];
  const uint32_t segment = progress.started++;
  if (progress.bytes == 0 && message_slice(plan_->steps[index]).count > 0) {
    complete_segment(index);
  } else {
    post(index, segment);
  }
}

void Execution::post(uint32_t index, uint32_t segment) {
  const Step& step = plan_->steps[index];
  Progress& progress = progress_[index];
  const size_t bytes = segment_size(progress, segment);
  Message& message = messages_[index * depth + segment % depth];
  static_cast<Operation&>(message) = {};
  message.step = index;
  message.completed = false;
  const uint64_t size = call_.bytes > 0 ? call_.bytes : Tag::of_message | progress.bytes;
  message.tag = {number_, step.ordinal, segment, signature_, size};
  message.bytes = bytes;
  message.queue = &completed_;
  const Slice& slice = message_slice(step);
  Bytes* room = gathered_.data() + progress.gathered + (segment % depth) * slice.count;
  if (progress.bounce) {
    *room = {progress.bounce + segment % depth * segment_bytes_, bytes};
    message.pieces = {room, 1};
  } else {
    message.pieces = gather(slice, segment_begin(segment), bytes, room);
  }
  const bool done = step.kind == Kind::send ? progress.channel->post_send(&message)
                                            : progress.channel->post_recv(&message);
  if (done) complete(&message);
}

void Execution::complete(Message* message) {
  if (!message->status.ok()) return fail(*message);
  const uint32_t index = message->step;
  Progress& progress = progress_[index];
  const Step& step = plan_->steps[index];
  if (step.kind == Kind::recv_reduce) compute(step, progress, message->tag.segment);
  message->completed = true;
  // Segments may complete in any order, but count as done in order.
  while (progress.done < progress.started &&
         messages_[index * depth + progress.done % depth].completed) {
    messages_[index * depth + progress.done % depth].completed = false;
    complete_segment(index);
  }
}

void Execution::complete_segment(uint32_t index) {
  Progress& progress = progress_[index];
  if (++progress.done == progress.segments) {
    --unfinished_;
  } else {
    enqueue(index);
  }
  if (progress.unpacks && !progress.unpacking) {
    progress.unpacking = true;
    unpacking_.push(index);
  }
  for (const uint32_t dependent : schedule_->dependents(index)) enqueue(dependent);
}

void Execution::fail(const Message& message) {
  if (!status_.ok()) return;
  failed_peer_ = plan_->steps[message.step].peer;
  status_ = message.status;
  if (status_.code() != Code::mismatch) return;
  const Claim expected{signature_, message.tag.size & ~Tag::of_message};
  const Claim theirs{message.seen_signature, message.seen_size & ~Tag::of_message};
  if (!(theirs == expected)) {
    status_ = describe_mismatch(expected, theirs);
  } else if (message.seen_bytes != message.bytes) {
    status_ = describe_other_length(message);
  }
}

// The call has the same size at the peer, but not this part of it. A full segment may not be the
// peer's last one.
Status Execution::describe_other_length(const Message& message) const {
  const size_t seen = segment_begin(message.tag.segment) + message.seen_bytes;
  const bool may_go_on = message.seen_bytes >= segment_bytes_;
  const std::string theirs = (may_go_on ? "at least " : "") + std::to_string(seen);
  return {Code::mismatch,
          "it sends a part of " + theirs + " bytes where this rank expects one of " +
              std::to_string(progress_[message.step].bytes) + ": counts or datatypes differ"};
}

size_t Execution::segment_size(const Progress& progress, uint32_t segment) const {
  return std::min(segment_bytes_, progress.bytes - segment_begin(segment));
}

Execution::Cursor Execution::seek(const Slice& slice, size_t offset) const {
  Cursor cursor{runs_.data() + slice.first, offset};
  while (cursor.offset > 0 && cursor.offset >= cursor.run->size) {
    cursor.offset -= cursor.run->size;
    ++cursor.run;
  }
  return cursor;
}

std::span<const Bytes> Execution::gather(const Slice& slice, size_t offset, size_t bytes,
                                         Bytes* into) const {
  if (bytes == 0) return {};
  size_t count = 0;
  for (Cursor at = seek(slice, offset); bytes > 0; ++at.run, at.offset = 0) {
    const size_t size = std::min(at.run->size - at.offset, bytes);
    if (size > 0) into[count++] = {at.run->data + at.offset, size};
    bytes -= size;
  }
  return {into, count};
}

// Combines or copies one segment of a step.
void Execution::compute(const Step& step, Progress& progress, uint32_t segment) {
  const size_t begin = segment_begin(segment), bytes = segment_size(progress, segment);
  if (bytes == 0) return;
  move(step.from, begin, bytes, &View::source);
  move(step.with, begin, bytes, &View::source);
  if (!status_.ok()) return;
  const Cursor from = seek(step.from, begin), to = seek(step.to, begin);
  if (step.kind == Kind::copy) return combine(from, {}, to, bytes);
  if (step.kind == Kind::reduce) return combine(from, seek(step.with, begin), to, bytes);
  const Bytes bounce{progress.bounce + segment % depth * segment_bytes_, bytes};
  const Cursor received = progress.bounce ? Cursor{&bounce, 0} : to;
  step.received_first ? combine(received, from, to, bytes) : combine(from, received, to, bytes);
}

// out = left (op) right, run by run; a copy where there is no right.
void Execution::combine(Cursor left, Cursor right, Cursor out, size_t bytes) {
  const auto room = [](const Cursor& at) { return at.run->size - at.offset; };
  const auto step_by = [](Cursor& at, size_t size) {
    at.offset += size;
    if (at.offset == at.run->size) at = {at.run + 1, 0};
  };
  while (bytes > 0) {
    while (room(left) == 0) left = {left.run + 1, 0};
    while (right.run && room(right) == 0) right = {right.run + 1, 0};
    while (room(out) == 0) out = {out.run + 1, 0};
    size_t size = std::min({bytes, room(left), room(out)});
    if (right.run) size = std::min(size, room(right));
    std::byte* const target = out.run->data + out.offset;
    const std::byte* const first = left.run->data + left.offset;
    if (right.run) {
      call_.reduction.kernel(first, right.run->data + right.offset, target, size / call_.element,
                             call_.reduction.context);
      step_by(right, size);
    } else if (target != first) {
      copy_bytes(target, first, size);
    }
    step_by(left, size);
    step_by(out, size);
    bytes -= size;
  }
}

// Packs or unpacks these bytes of a slice (way: source or sink), where its views have a Packing.
void Execution::move(const Slice& slice, size_t offset, size_t bytes, Packing* View::*way) {
  if (!staged_ || slice.count == 0) return;
  for (Cursor at = seek(slice, offset); bytes > 0; ++at.run, at.offset = 0) {
    const size_t size = std::min(at.run->size - at.offset, bytes);
    const Area area = plan_->pieces[static_cast<size_t>(at.run - runs_.data())].area;
    Packing* const packing = area == Area::scratch ? nullptr : view(area).*way;
    if (packing && size > 0) {
      packing->move(static_cast<size_t>(at.run->data - view(area).base) + at.offset, size);
      if (Status failure = packing->failure(); !failure.ok() && status_.ok()) {
        status_ = std::move(failure);
        failed_here_ = true;
      }
    }
    bytes -= size;
  }
}

std::vector<Rank> Execution::waiting_for() const {
  std::vector<Rank> ranks;
  for (size_t i = 0; i < progress_.size(); ++i) {
    if (progress_[i].started > progress_[i].done) ranks.push_back(plan_->steps[i].peer);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void Execution::cancel() {
  for (const Progress& progress : progress_) {
    if (progress.channel) progress.channel->withdraw();
  }
  (void)completed_.take();
}

}  // namespace sluice
