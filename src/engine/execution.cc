// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/execution.h"

#include <algorithm>
#include <utility>

namespace sluice {

namespace {

// Whether blocks without data are messages all the same, so that ranks that disagree about them
// find out. (Alltoallv would have too many.)
bool tells_empty(Collective collective) {
  switch (collective) {
    case Collective::gather:
    case Collective::gatherv:
    case Collective::scatter:
    case Collective::scatterv:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string describe_signature(uint32_t signature) {
  const uint32_t number = signature % (1U << Call::collective_bits);
  const Rank root = signature >> Call::collective_bits;
  if (number >= collective_count) return "something unknown";
  if (root >= Call::exchange_root) {
    const auto preceded = static_cast<Collective>(root - Call::exchange_root);
    return "the vote before a large " + std::string(to_string(preceded)) +
           ", or for a persistent one";
  }
  const auto collective = static_cast<Collective>(number);
  std::string text(to_string(collective));
  if (is_rooted(collective)) text += " with root " + std::to_string(root);
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
  if (device()) follow_copies();
  run_ready();
  const bool busy = status_.ok() && run_work();
  const bool is_done = !busy && unfinished_ == 0 && (!device() || copies_.have_ended());
  if (device()) fail_here(device()->failure());
  if (!status_.ok()) return State::failed;
  if (busy) return State::busy;
  if (is_done && !repeats_) memory_.registrations().clear();
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
  size_t budget = memory_.segment_bytes();
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
    pack(plan_->steps[index].from, segment_begin(progress.started), bytes, &View::source);
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
    pack(plan_->steps[index].to, segment_begin(progress.unpacked++), bytes, &View::sink);
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
         (!device() || copies_.use(slot_of(index, progress.started)) == DeviceCopies::Use::none) &&
         may_start(plan_->steps[index], progress.started);
}

void Execution::try_step(uint32_t index) {
  while (status_.ok() && may_post(index)) start_segment(index);
}

void Execution::start_segment(uint32_t index) {
  Progress& progress = progress_[index];
  const uint32_t segment = progress.started++;
  if (progress.bytes == 0 && message_slice(plan_->steps[index]).count > 0 &&
      !tells_empty(memory_.call().collective)) {
    complete_segment(index);
  } else if (device() && plan_->steps[index].kind == Kind::send && progress.bytes > 0) {
    copy_out(index, segment);
  } else {
    post(index, segment);
  }
}

// Begins to copy a segment that is to be sent.
void Execution::copy_out(uint32_t index, uint32_t segment) {
  const Progress& progress = progress_[index];
  const Cursor from = memory_.seek(plan_->steps[index].from, segment_begin(segment));
  std::byte* host = bounce_of(progress, segment);
  PlanMemory::visit_runs(from, segment_size(progress, segment),
                         [&](const Cursor& at, size_t bytes) {
                           device()->copy_out(host, at.data(), bytes);
                           host += bytes;
                         });
  messages_[slot_of(index, segment)].tag.segment = segment;
  copies_.begin(slot_of(index, segment), DeviceCopies::Use::fills);
}

// Begins to copy a segment that was received, to where it is reduced or stays.
void Execution::copy_in(uint32_t index, uint32_t segment) {
  const Step& step = plan_->steps[index];
  const Progress& progress = progress_[index];
  const Bytes apart{memory_.operand(), memory_.segment_bytes()};
  const bool overwrites = memory_.overwrites_operand(step);
  const Cursor to = overwrites ? Cursor{&apart, 0} : memory_.seek(step.to, segment_begin(segment));
  const std::byte* host = bounce_of(progress, segment);
  PlanMemory::visit_runs(to, segment_size(progress, segment), [&](const Cursor& at, size_t bytes) {
    device()->copy_in(at.data(), host, bytes);
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
  const uint64_t size =
      memory_.call().bytes > 0 ? memory_.call().bytes : Tag::of_message | progress.bytes;
  message.tag = {number_, step.ordinal, segment, signature_, size};
  message.bytes = bytes;
  message.queue = &completed_;
  const Slice& slice = message_slice(step);
  Bytes* room = gathered_.data() + progress.gathered + (segment % depth) * slice.count;
  if (progress.bounce) {
    *room = {bounce_of(progress, segment), bytes};
    message.pieces = {room, 1};
    message.within = bounce_.whole();
  } else {
    message.pieces = memory_.gather(slice, segment_begin(segment), bytes, room);
    message.within = memory_.runs_of(slice);
  }
  message.registrations = device() ? nullptr : &memory_.registrations();
  const bool done = step.kind == Kind::send ? progress.channel->post_send(&message)
                                            : progress.channel->post_recv(&message);
  if (done) complete(&message);
}

void Execution::complete(Message* message) {
  if (!message->status.ok()) return fail(*message);
  const uint32_t index = message->step;
  Progress& progress = progress_[index];
  const Step& step = plan_->steps[index];
  const bool comes_in = device() && step.kind != Kind::send && message->bytes > 0;
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
  failed_.peer = plan_->steps[message.step].peer;
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
  const bool may_go_on = message.seen_bytes >= memory_.segment_bytes();
  const std::string theirs = (may_go_on ? "at least " : "") + std::to_string(seen);
  return {Code::mismatch,
          "it sends a part of " + theirs + " bytes where this rank expects one of " +
              std::to_string(progress_[message.step].bytes) + ": counts or datatypes differ"};
}

size_t Execution::segment_size(const Progress& progress, uint32_t segment) const {
  return std::min(memory_.segment_bytes(), progress.bytes - segment_begin(segment));
}

// Combines or copies one segment of a step.
void Execution::compute(const Step& step, Progress& progress, uint32_t segment) {
  const size_t begin = segment_begin(segment), bytes = segment_size(progress, segment);
  if (bytes == 0) return;
  pack(step.from, begin, bytes, &View::source);
  pack(step.with, begin, bytes, &View::source);
  if (!status_.ok()) return;
  const Cursor from = memory_.seek(step.from, begin), to = memory_.seek(step.to, begin);
  if (step.kind == Kind::copy) return memory_.combine(from, {}, to, bytes);
  if (step.kind == Kind::reduce)
    return memory_.combine(from, memory_.seek(step.with, begin), to, bytes);
  Bytes apart;
  Cursor received = to;
  if (memory_.overwrites_operand(step)) {
    apart = {device() ? memory_.operand() : bounce_of(progress, segment), bytes};
    received = {&apart, 0};
  }
  step.received_first ? memory_.combine(received, from, to, bytes)
                      : memory_.combine(from, received, to, bytes);
}

// Packs or unpacks (way: source or sink).
void Execution::pack(const Slice& slice, size_t offset, size_t bytes, Packing* View::*way) {
  if (memory_.is_packed()) fail_here(memory_.pack(slice, offset, bytes, way));
}

// Fails unless `failure` is none.
void Execution::fail_here(const Status& failure) {
  if (failure.ok() || !status_.ok()) return;
  status_ = failure;
  failed_.is_here = true;
}

// Whether a segment of the step is on the wire, and not on its way from a device to it.
bool Execution::is_posted(uint32_t index) const {
  const Progress& progress = progress_[index];
  for (uint32_t segment = progress.done; segment < progress.started; ++segment) {
    if (!device()) return true;
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
  memory_.registrations().clear();
}

}  // namespace sluice
