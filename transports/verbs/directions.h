// SPDX-License-Identifier: BSD-3-Clause
//
// What a queue pair (pair.h) knows of each direction of its byte stream: which bytes, batches and
// requests are where. All numbers count since the beginning. Neither class knows a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transports/verbs/module.h"

namespace sluice {

// Under way in one direction.
inline constexpr uint32_t verbs_max_batches = 112;
// How many batches this side has read, modulo 4096: what a credit says.
inline constexpr uint32_t verbs_credit_mask = 0xFFF;

// To the peer: bytes are staged, posted in batches, completed by the device and read by the peer.
class VerbsSends {
 public:
  static constexpr uint32_t depth = 128;       // requests under way
  static constexpr uint32_t max_writes = 16;   // posted as one list
  static constexpr uint32_t spare_writes = 8;  // for credits

  // ring: bytes of the staging ring, and of the peer's.
  explicit VerbsSends(size_t ring) : ring_(ring) {}

  // Bytes that can be staged now. (A batch needs requests of its own.)
  size_t room() const {
    const bool batches = batches_ - credited_batches_ < verbs_max_batches;
    if (!batches || free_requests() < max_writes + spare_writes) return 0;
    return ring_ - (staged_ - (credited_ < completed_ ? credited_ : completed_));
  }
  uint32_t free_requests() const { return depth - (writes_ - completed_writes_); }
  void stage(std::byte* staging, const std::byte* from, size_t bytes);
  uint64_t staged() const { return staged_; }
  size_t unposted() const { return staged_ - posted_; }
  // Makes the writes for the unposted bytes, of at most `most` each; the ring's end divides one
  // more. Returns their number, at most max_writes.
  uint32_t make_batch(std::byte* staging, uint64_t peer_ring, size_t most,
                      SluiceVerbsWrite* writes);
  // The next write, not of a batch, moves no byte of the stream.
  void make_other() { write_ends_[writes_ % depth] = posted_; }
  // Numbers the next write, and has it signalled if one is due.
  void number(SluiceVerbsWrite& write);
  // A signalled write has completed, and so have all before it. False: there is no such write.
  bool complete(uint64_t id);
  // The peer's credit. False: more than was sent.
  bool take_credit(uint32_t credit);

  bool has_written() const { return writes_ > 0; }
  bool has_completed_any() const { return completed_writes_ > 0; }
  bool have_completed() const { return completed_writes_ == writes_; }
  bool is_last_signalled() const { return signalled_writes_ == writes_; }
  bool have_bytes_completed() const { return completed_ == staged_; }

 private:
  static constexpr uint32_t batch_slots = 128;       // a power of two, as depth
  static constexpr uint32_t writes_per_signal = 16;  // at most

  const size_t ring_;
  // Bytes: staged, posted, read by the peer, completed, and up to the last signalled write's end.
  uint64_t staged_ = 0, posted_ = 0, credited_ = 0, completed_ = 0, signalled_ = 0;
  uint32_t writes_ = 0, completed_writes_ = 0, signalled_writes_ = 0;
  uint32_t batches_ = 0, credited_batches_ = 0;
  std::array<uint64_t, depth> write_ends_{};  // staged bytes up to the write's end
  std::array<uint64_t, batch_slots> batch_ends_{};
};

// From the peer: bytes arrive in batches, are read, and are then freed by a credit.
class VerbsReceives {
 public:
  static constexpr uint32_t depth = 128;  // batches, credits, and those deferred

  explicit VerbsReceives(size_t ring) : ring_(ring) {}

  size_t readable() const { return arrived_ - read_; }
  // Returns the bytes moved.
  size_t read(const std::byte* ring, std::byte* to, size_t bytes);
  // A batch has arrived. False: the peer had no credit for it.
  bool take_batch(uint32_t bytes);
  // Half of what the peer may send is read, and it does not know.
  bool owes_credit() const {
    return freed_batches_ - told_batches_ >= verbs_max_batches / 2 || freed_ - told_ >= ring_ / 2;
  }
  // The credit, which is told now.
  uint32_t tell_credit();
  // Frees the batches that are read whole.
  void free_batches();

  // Receive requests: one was used by a message, or given up by the device; `posted` are new.
  void owe_request() { ++requests_owed_; }
  uint32_t requests_owed() const { return requests_owed_; }
  void end_request() { requests_ -= requests_ > 0 ? 1 : 0; }
  void note_posted(uint32_t posted) { requests_ += posted, requests_owed_ = 0; }
  bool has_requests() const { return requests_ > 0; }

 private:
  static constexpr uint32_t batch_slots = 128;

  const size_t ring_;
  // Bytes that have arrived, that were read, those in batches that are read whole, and those of
  // them that the peer knows of.
  uint64_t arrived_ = 0, read_ = 0, freed_ = 0, told_ = 0;
  uint32_t batches_ = 0, freed_batches_ = 0, told_batches_ = 0;
  uint32_t requests_owed_ = 0, requests_ = 0;  // to be posted, and posted
  std::array<uint64_t, batch_slots> batch_ends_{};
};

}  // namespace sluice
