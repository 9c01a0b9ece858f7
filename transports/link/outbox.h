// SPDX-License-Identifier: BSD-3-Clause
//
// Frames queued for the peer, in order. Payloads are sent from where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "transports/conduit.h"
#include "transports/link/frame.h"
#include "transports/transport.h"

namespace sluice {

struct Outgoing {
  Frame frame;
  Operation* operation = nullptr;        // a send, whose pieces are the payload, unless there is
  std::unique_ptr<std::byte[]> owned{};  // frame.length bytes
  bool bare = false;                     // payload without a header: a greeting
  bool last = false;                     // what follows goes over another conduit

  size_t header_bytes() const { return bare ? 0 : Frame::bytes; }
  size_t bytes() const { return header_bytes() + frame.length; }
};

class Outbox {
 public:
  // Nothing is queued, and this process need not move any byte that the conduit has taken.
  bool empty() const { return all_taken() && unsent_ == 0; }
  void push(Outgoing&& frame) { frames_.push_back(std::move(frame)); }
  // A frame of the link's or of a team's own, with a copy of this payload. part_of: a send that is
  // not complete before the frame has left (Operation::parts).
  void push(const Frame& frame, std::span<const std::byte> payload, bool last = false,
            Operation* part_of = nullptr);
  // A greeting, before all others. Nothing has been taken yet.
  void push_front(Outgoing&& greeting) {
    uncounted_ += greeting.bytes();
    frames_.insert(frames_.begin(), std::move(greeting));
  }
  // Bytes of frames that were taken so far.
  uint64_t sent() const { return taken_ - uncounted_; }

  // shifted: a frame that is the last over this conduit has left.
  enum class Result { drained, blocked, shifted, failed };
  struct Flushed {
    Result result;
    int error = 0;              // errno if it failed
    bool moved = false;         // some bytes were sent
    Operation* done = nullptr;  // sends now complete (this process need not move them any more),
                                // linked by `next`
  };
  // Sends what the conduit takes. Several frames go in one write.
  Flushed flush(Conduit& conduit);

  // Removes what is queued for the team's sends, all or those of one call, but not the frames of
  // messages that are spread, because their parts go in any case. Returns the sends
  // (linked by `next`), the window bytes that they took, and the credit that they would have
  // carried. A partly sent one is completed from a copy.
  struct GivenUp {
    Operation* sends = nullptr;
    size_t charge = 0;
    uint32_t credit = 0;
  };
  GivenUp withdraw(const TeamId& team, std::optional<uint32_t> call);
  // There was no memory for such a copy, so nothing more may be sent.
  bool is_torn() const { return torn_; }

  // The connection broke, and another one, on which nothing was agreed, goes on where it stopped:
  // the peer has all that was taken. Drops the connection's own frames that have not begun. Returns
  // sends now complete, as Flushed::done.
  Operation* go_on();

  void clear();

  static constexpr size_t max_runs = 64;  // of memory in one write

 private:
  class Batch;

  // A send that the conduit has taken but not sent: it completes when all bytes before `end` left.
  struct Held {
    Operation* operation;
    TeamId team;
    uint64_t end;  // of all bytes taken so far
  };

  bool all_taken() const { return first_ == frames_.size(); }
  void fill(Batch& batch) const;
  static bool gather(Batch& batch, const Outgoing& frame, size_t skip);
  void advance(size_t bytes, Flushed& flushed);
  bool complete_held(const Conduit& conduit, Flushed& flushed);
  bool push_on(Conduit& conduit, Flushed& flushed);
  void withdraw_held(const TeamId& team, std::optional<uint32_t> call, GivenUp& given);
  void forget_taken();

  std::vector<Outgoing> frames_;
  size_t first_ = 0;  // index in frames_; those before it are taken
  size_t sent_ = 0;   // bytes taken of the first
  uint64_t taken_ = 0;
  uint64_t uncounted_ = 0;  // of these, greetings
  size_t unsent_ = 0;       // Conduit::unsent, as last seen
  std::vector<Held> held_;  // in order
  bool leaves_ = false;     // the last frame over the conduit is taken
  bool torn_ = false;
};

}  // namespace sluice
