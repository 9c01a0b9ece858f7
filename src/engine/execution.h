// SPDX-License-Identifier: BSD-3-Clause
//
// An Execution runs one plan on real memory. It never blocks: the caller drives the endpoint and
// advances the execution until it is done. So the same code can serve blocking, non-blocking and
// persistent collectives.
//
// Segments. Every step covers its slices segment by segment. Segment k of a step may start when
// segment k of each step it waits for is done, if the plan says `pipelined`, and otherwise when
// those steps are done whole. At most `depth` segments of a message are posted at a time, so that
// one can be reduced while the next is on the wire.
//
// Packing. If a view has a source, a segment is packed just before it is sent or computed with. If
// it has a sink, a segment that no later step writes is unpacked when nothing more urgent is left.
// Each advance() packs or unpacks about one segment, so the caller drives the network in between. A
// failed copy fails the execution before the segment is sent.
//
// Devices. If the call has one, its views and scratch are the device's memory, and each message has
// host memory of its own for `depth` segments (device_copies.h). The device does its work in order.
// So a step's local work counts as done once the device has been given it, and a received segment
// once the device has been told to copy it. But a segment is sent only after its copy has arrived,
// and the call is done only after all work is done.
#pragma once

#include <cstdint>
#include <vector>

#include "src/engine/call.h"
#include "src/engine/device_copies.h"
#include "src/engine/plan_memory.h"
#include "src/engine/schedule.h"
#include "src/engine/step_queue.h"
#include "transports/transport.h"

namespace sluice {

// Provides an execution with channels; implemented by the team (team_channels.h). An error says
// what is wrong with the peer's address.
class Channels {
 public:
  virtual ~Channels() = default;
  virtual Result<Channel*> channel(Rank peer) = 0;
};

// Encodes what a message belongs to, for Tag::signature: the collective and its root.
inline uint32_t encode_signature(Collective collective, Rank root) {
  return static_cast<uint32_t>(collective) | root << Call::collective_bits;
}
// "broadcast from root 3", "allreduce".
std::string describe_signature(uint32_t signature);

// What a message, or the data of a round, says about itself.
struct Claim {
  uint32_t signature = 0;
  size_t bytes = 0;
  bool operator==(const Claim&) const = default;
};
// The error for a peer's claim that differs from what this rank expected. It names no rank.
Status describe_mismatch(const Claim& expected, const Claim& theirs);

class Execution {
 public:
  enum class State {
    done,
    waiting,  // for the network or a device: drive the endpoint, then advance again
    busy,     // there is local work left: drive the endpoint if you like, and advance again at once
    failed,   // see status(); cancel() before anything else
  };

  // repeats: most calls will be on the same memory by the same schedule, which stays valid. What is
  // registered with network cards stays so, until another call starts.
  explicit Execution(bool repeats = false) : repeats_(repeats) {}

  // Begins a call, or a part of one, whose messages carry `number` (Tag::call). Everything that can
  // fail for lack of memory or for an invalid address fails here, before the first send. What
  // `call` points to must stay valid until the execution is done or cancelled. segment: bytes of a
  // pipelined piece; equal on all ranks.
  Status start(const Schedule& schedule, const Call& call, uint32_t number, size_t segment,
               Channels& channels);

  // The same in an execution that repeats, of the last call, if that is done. False: nothing has
  // happened, because this one is on other memory.
  bool restart(const Call& call, uint32_t number);

  // What a call with a device will need of it. Between calls only.
  DeviceNeeds measure(const Schedule& schedule, const Call& call, size_t segment);

  State advance();

  // Why it failed. The text names no rank: the rank concerned is `failed_peer()`, or this one if
  // `failed_here()`.
  const Status& status() const { return status_; }
  Rank failed_peer() const { return failed_.peer; }
  bool failed_here() const { return failed_.is_here; }
  // The ranks that unfinished receives and sends wait for, each once, ascending.
  std::vector<Rank> waiting_for() const;
  // The call's device, if that is waited for; else nullptr.
  const DeviceWork* awaited_device() const {
    const bool has_work = device() && (unfinished_ == 0 || copies_.are_under_way());
    return has_work ? device() : nullptr;
  }

  // Withdraws all posted operations. After that no memory of the call is touched, except by work
  // that the call's device has begun.
  void cancel();

  // To be called between calls: frees memory that only large calls need.
  void trim() {
    memory_.trim(much_scratch);
    bounce_.trim(much_scratch);
  }

 private:
  static constexpr size_t much_scratch = size_t{64} << 10;
  static constexpr uint32_t depth = 2;  // segments of one message posted at a time

  using Cursor = PlanMemory::Cursor;
  struct Message : Operation {  // one posted segment
    uint32_t step = 0;
    bool completed = false;
  };
  struct Progress {  // of a step
    Channel* channel = nullptr;
    // Where a recv_reduce into its own operand receives; with a device, each message's host memory.
    std::byte* bounce = nullptr;
    size_t bytes = 0;
    uint32_t segments = 1;
    uint32_t started = 0, done = 0;
    uint32_t gathered = 0;   // index in gathered_: room for the runs of `depth` segments
    uint32_t unpacked = 0;   // segments
    bool packs = false;      // sends from memory that has a source
    bool unpacks = false;    // writes final values to memory that has a sink
    bool queued = false;     // in ready_, packing_ or local_
    bool unpacking = false;  // in unpacking_
  };

  void set_call(const Schedule& schedule, const Call& call, size_t segment);
  DeviceWork* device() const { return memory_.device(); }
  static bool is_message(Kind kind) {
    return kind == Kind::send || kind == Kind::recv || kind == Kind::recv_reduce;
  }

  void enqueue_first();
  Status lay_out();
  Status place_steps();
  Status connect(Channels& channels);
  static const Slice& message_slice(const Step& step) {
    return step.kind == Kind::send ? step.from : step.to;
  }
  size_t bounce_bytes(const Step& step) const;
  std::byte* bounce_of(const Progress& progress, uint32_t segment) const {
    return progress.bounce + segment % depth * memory_.segment_bytes();
  }
  static uint32_t slot_of(uint32_t step, uint32_t segment) {
    return step * depth + segment % depth;
  }

  void enqueue(uint32_t step);
  void drain();
  void follow_copies();
  void run_ready();
  bool run_work();
  bool pack_some(size_t& budget);
  bool compute_some(size_t& budget);
  bool unpack_some(size_t& budget);
  bool may_start(const Step& step, uint32_t segment) const;
  bool may_post(uint32_t index) const;
  bool is_posted(uint32_t index) const;
  void try_step(uint32_t index);
  void start_segment(uint32_t index);
  void post(uint32_t index, uint32_t segment);
  void copy_out(uint32_t index, uint32_t segment);
  void copy_in(uint32_t index, uint32_t segment);
  void complete(Message* message);
  void complete_segment(uint32_t index);
  void compute(const Step& step, Progress& progress, uint32_t segment);
  void pack(const Slice& slice, size_t offset, size_t bytes, Packing* View::*way);
  void fail(const Message& message);
  void fail_here(const Status& failure);
  Status describe_other_length(const Message& message) const;

  size_t segment_begin(uint32_t segment) const { return segment * memory_.segment_bytes(); }
  size_t segment_size(const Progress& progress, uint32_t segment) const;

  const bool repeats_;
  const Schedule* schedule_ = nullptr;
  const Plan* plan_ = nullptr;
  PlanMemory memory_;
  uint32_t number_ = 0;
  uint32_t signature_ = 0;
  uint32_t unfinished_ = 0;  // steps
  std::vector<Bytes> gathered_;
  std::vector<Progress> progress_;
  std::vector<Message> messages_;  // `depth` for each step
  StepQueue ready_;                // messages to try
  StepQueue packing_;              // messages that must be packed first
  std::vector<uint32_t> local_;    // steps of local work to try
  StepQueue unpacking_;
  CompletionQueue completed_;
  Scratch bounce_;       // of messages
  DeviceCopies copies_;  // if the call has a device
  Status status_;
  struct {
    Rank peer = 0;
    bool is_here = false;
  } failed_;
};

}  // namespace sluice
