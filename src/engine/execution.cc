// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/execution.h"

#include <algorithm>
#include <utility>

#include "src/base/copy.h"

namespace sluice {

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

Execution::State Execution::advance() {
  drain();
  if (call_.device) follow_copies();
  run_ready();
  const bool busy = status_.ok() && run_work();
  const bool is_done = !busy && unfinished_ == 0 && (!call_.device || copies_.have_ended());
  if (call_.device) fail_here(call_.device->failure());
  if (!status_.ok()) return State::failed;
  if (busy) return State::busy;
  return is_done ? State::done : State::waiting;
}

// Handles the operations that the transport has completed, oldest first.
void Execution::drain() {
  Operation* oldest = nullptr;
  for (Operation* latest = completed_.pop_all(); latest;) {
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

// Goes on with the messages whose copies from or to the device are done.
void Execution::follow_copies() {
  while (status_.ok()) {
    const auto done = copies_.pop_done();
    if (!done) return;
    if (done->use == DeviceCopies::Use::fills) {
      post(done->slot / depth, messages_[done->slot].tag.segment);
    } else {
      enqueue(done->slot / depth);
    }
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
         (!call_.device ||
          copies_.use(slot_of(index, progress.started)) == DeviceCopies::Use::none) &&
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
  } else if (call_.device && plan_->steps[index].kind == Kind::send && progress.bytes > 0) {
    copy_out(index, segment);
  } else {
    post(index, segment);
  }
}

// Begins to copy a segment that is to be sent.
void Execution::copy_out(uint32_t index, uint32_t segment) {
  const Progress& progress = progress_[index];
  const Cursor from = seek(plan_->steps[index].from, segment_begin(segment));
  std::byte* host = bounce_of(progress, segment);
  visit_runs(from, segment_size(progress, segment), [&](const Cursor& at, size_t bytes) {
    call_.device->copy_out(host, at.data(), bytes);
    host += bytes;
  });
  messages_[slot_of(index, segment)].tag.segment = segment;
  copies_.begin(slot_of(index, segment), DeviceCopies::Use::fills);
}

// Begins to copy a segment that was received, to where it is reduced or stays.
void Execution::copy_in(uint32_t index, uint32_t segment) {
  const Step& step = plan_->steps[index];
  const Progress& progress = progress_[index];
  const Bytes apart{operand_, segment_bytes_};
  const bool overwrites = overwrites_operand(step);
  const Cursor to = overwrites ? Cursor{&apart, 0} : seek(step.to, segment_begin(segment));
  const std::byte* host = bounce_of(progress, segment);
  visit_runs(to, segment_size(progress, segment), [&](const Cursor& at, size_t bytes) {
    call_.device->copy_in(at.data(), host, bytes);
    host += bytes;
  });
  copies_.begin(slot_of(index, segment), DeviceCopies::Use::empties);
}

void Execution::post(uint32_t index, uint32_t segment) {
  const Step& step = plan_->steps[index];
  Progress& progress = progress_[index];
  const size_t bytes = segment_size(progress, segment);
  Message& message = messages_[slot_of(index, segment)];
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
    *room = {bounce_of(progress, segment), bytes};
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
  const bool comes_in = call_.device && step.kind != Kind::send && message->bytes > 0;
  if (comes_in) copy_in(index, message->tag.segment);
  if (step.kind == Kind::recv_reduce) compute(step, progress, message->tag.segment);
  message->completed = true;
  // Segments may complete in any order, but count as done in order.
  while (progress.done < progress.started && messages_[slot_of(index, progress.done)].completed) {
    messages_[slot_of(index, progress.done)].completed = false;
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

// visit(cursor, bytes) for each run of these bytes.
template <typename Visit>
void Execution::visit_runs(Cursor at, size_t bytes, const Visit& visit) {
  for (; bytes > 0; ++at.run, at.offset = 0) {
    const size_t size = std::min(at.run->size - at.offset, bytes);
    if (size > 0) visit(at, size);
    bytes -= size;
  }
}

std::span<const Bytes> Execution::gather(const Slice& slice, size_t offset, size_t bytes,
                                         Bytes* into) const {
  if (bytes == 0) return {};
  size_t count = 0;
  visit_runs(seek(slice, offset), bytes, [&](const Cursor& at, size_t size) {
    into[count++] = {at.data(), size};
  });
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
  Bytes apart;
  Cursor received = to;
  if (overwrites_operand(step)) {
    apart = {call_.device ? operand_ : bounce_of(progress, segment), bytes};
    received = {&apart, 0};
  }
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
    std::byte* const target = out.data();
    const std::byte* const first = left.data();
    if (right.run) {
      combine_run(first, right.data(), target, size);
      step_by(right, size);
    } else if (target != first) {
      call_.device ? call_.device->copy(target, first, size) : copy_bytes(target, first, size);
    }
    step_by(left, size);
    step_by(out, size);
    bytes -= size;
  }
}

void Execution::combine_run(const std::byte* left, const std::byte* right, std::byte* out,
                            size_t bytes) {
  const size_t elements = bytes / call_.element;
  if (call_.device) return call_.device->reduce(left, right, out, elements);
  call_.reduction.kernel(left, right, out, elements, call_.reduction.context);
}

// Packs or unpacks these bytes of a slice (way: source or sink), where its views have a Packing.
void Execution::move(const Slice& slice, size_t offset, size_t bytes, Packing* View::*way) {
  if (!staged_ || slice.count == 0) return;
  visit_runs(seek(slice, offset), bytes, [&](const Cursor& at, size_t size) {
    const Area area = plan_->pieces[static_cast<size_t>(at.run - runs_.data())].area;
    Packing* const packing = area == Area::scratch ? nullptr : view(area).*way;
    if (!packing) return;
    packing->move(static_cast<size_t>(at.data() - view(area).base), size);
    fail_here(packing->failure());
  });
}

// Fails unless `failure` is none.
void Execution::fail_here(const Status& failure) {
  if (failure.ok() || !status_.ok()) return;
  status_ = failure;
  failed_here_ = true;
}

// Whether a segment of the step is on the wire, and not on its way from a device to it.
bool Execution::is_posted(uint32_t index) const {
  const Progress& progress = progress_[index];
  for (uint32_t segment = progress.done; segment < progress.started; ++segment) {
    if (!call_.device) return true;
    if (copies_.use(slot_of(index, segment)) != DeviceCopies::Use::fills) return true;
  }
  return false;
}

std::vector<Rank> Execution::waiting_for() const {
  std::vector<Rank> ranks;
  for (uint32_t i = 0; i < progress_.size(); ++i) {
    if (is_posted(i)) ranks.push_back(plan_->steps[i].peer);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void Execution::cancel() {
  for (const Progress& progress : progress_) {
    if (progress.channel) progress.channel->withdraw();
  }
  (void)completed_.pop_all();
}

}  // namespace sluice
