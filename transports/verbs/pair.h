// SPDX-License-Identifier: BSD-3-Clause
//
// A byte stream in both directions over a reliable connected queue pair. Each side has a ring that
// the peer writes by RDMA, and a staging ring of the same size: byte i of the stream lies at i
// modulo the size in both. Bytes are copied into the staging ring and posted at once, in batches of
// at most a quarter of the ring. The last write of a batch has immediate data, whose arrival tells
// that the whole batch is in memory (an acknowledged flag in memory would not).
//
// The immediate is the batch's bytes (20 bits) and the credit (12 bits): how many of the peer's
// batches this side has read so far, modulo 4096. A credit frees a batch's bytes, and its receive
// request. If half of either is owed and no batch goes back, a write of no bytes carries the
// credit. At most 4 of those are under way, because each frees half of what the peer may send.
//
// Completions: one of 16 writes is signalled, and one in each quarter of the ring.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/base/status.h"
#include "transports/verbs/device.h"

namespace sluice {

class VerbsPair {
 public:
  // What the peer must know of this side. Sent as it is: another byte order shows in `magic`.
  struct End {
    static constexpr uint32_t expected = 0x51554501;

    uint32_t magic = expected;
    uint8_t ethernet = 0, gid_kind = 0, mtu = 0, unused = 0;
    uint8_t gid[16]{};
    uint16_t lid = 0, unused_too = 0;
    uint32_t number = 0, sequence = 0;
    uint32_t ring_bytes = 0, key = 0;
    uint32_t unused_as_well = 0;
    uint64_t ring = 0;
  };
  static constexpr uint32_t max_batches = 112;  // under way, in one direction

  // ring: bytes for each direction, at least 256.
  static Result<std::unique_ptr<VerbsPair>> make(const std::shared_ptr<VerbsDevice>& device,
                                                 size_t ring);
  ~VerbsPair();
  VerbsPair(const VerbsPair&) = delete;
  VerbsPair& operator=(const VerbsPair&) = delete;

  End end() const;
  // Afterwards this side can receive. The error says why the two do not reach each other, as
  // reaches() does. link: whose queue pair it is, a name only.
  Status connect(const End& peer, const void* link);

  // Posts a write of no meaning, as long as the longest packet, into the peer's ring. Once, before
  // anything is written.
  void send_trial();
  bool sent_trial() const { return writes_ > 0; }
  // Takes completions: whether the peer's trial has come, and whether this side's too has arrived.
  bool has_trial();
  bool tried() { return has_trial() && completed_writes_ > 0; }

  // Both return how many bytes they moved. They take completions first if these are needed: for
  // anything to read, and for room to write.
  size_t write(std::span<const iovec> runs);
  size_t read(std::span<const iovec> runs);
  // Takes completions, and returns whether there is anything to read, or an error.
  bool has_arrived();
  // Takes all completions that there are.
  void look();
  size_t readable() const { return arrived_ - read_; }
  // Whether everything written is in the peer's memory, or never will be.
  bool delivered();
  // The peer has ended, but the device may not have reported yet all that has arrived: has it do
  // so. Nothing more arrives or leaves.
  void stop();
  // Stopped, and look() has found everything that arrived, or the device never will report it.
  bool stopped() const { return stopped_ && (receives_out_ == 0 || hopeless_); }
  // Takes the device's asynchronous events; the pair may fail by them. A system call.
  void look_for_events();
  // Arms the device's descriptor for this pair. False if there is something to do already.
  bool sleeps(bool reads, bool writes);
  void awake() { device_->awake(); }
  int descriptor() const { return device_->descriptor(); }

  // errno and text if the pair is broken; what arrived before can still be read.
  int error() const { return error_; }
  const std::string& failure() const { return failure_; }

 private:
  static constexpr uint32_t max_writes = 16;         // posted as one list
  static constexpr uint32_t spare_writes = 8;        // for credits
  static constexpr uint32_t send_depth = 128;        // write requests under way
  static constexpr uint32_t receives_at_once = 8;    // posted
  static constexpr uint32_t receive_depth = 128;     // max_batches, credits, and those deferred
  static constexpr uint32_t batch_slots = 128;       // a power of two, as send_depth
  static constexpr uint32_t writes_per_signal = 16;  // at most

  VerbsPair(std::shared_ptr<VerbsDevice> device, size_t ring);
  Status make_parts();
  const SluiceVerbs& table() const { return device_->table(); }
  void fail(int error, const std::string& what);
  void give_up(const std::string& what);
  std::string reason_of(int status);

  size_t room() const;
  bool write(const std::byte* from, size_t left);
  uint32_t free_writes() const { return send_depth - (writes_ - completed_writes_); }
  void stage(const std::byte* from, size_t bytes);
  void post_batch();
  bool post(std::span<SluiceVerbsWrite> writes);
  uint32_t immediate(size_t bytes);
  void give_credit();
  void arm();
  void take(const SluiceVerbsDone& done);
  void take_immediate(uint32_t immediate);
  void take_credit(uint32_t credit);
  void renew_receives();
  void free_batches();

  const std::shared_ptr<VerbsDevice> device_;
  const size_t ring_bytes_;
  std::unique_ptr<VerbsMemory> ring_, staging_;
  SluiceVerbsQueue queue_{};
  uint32_t sequence_ = 0;
  End peer_;
  size_t max_batch_ = 0;
  int error_ = 0;
  std::string failure_;
  bool stopped_ = false;
  bool hopeless_ = false;  // completions may never come
  bool heard_ = false;     // an immediate has come
  bool armed_ = false;     // and no completion was found since

  // Bytes since the beginning, of those written: in the staging ring, posted, read by the peer,
  // completed; and of those read: arrived, read, in batches that are read whole, and those of them
  // that the peer knows of.
  uint64_t staged_ = 0, posted_ = 0, credited_ = 0, completed_ = 0, signalled_ = 0;
  uint64_t arrived_ = 0, read_ = 0, freed_ = 0, told_ = 0;
  // Counts since the beginning.
  uint32_t writes_ = 0, completed_writes_ = 0, signalled_writes_ = 0;
  uint32_t batches_out_ = 0, credited_batches_ = 0;
  uint32_t batches_in_ = 0, freed_batches_ = 0, told_batches_ = 0;
  uint32_t receives_owed_ = 0, receives_out_ = 0;  // to be posted, and posted
  std::array<uint64_t, send_depth> write_ends_{};  // staged bytes up to the write's end
  std::array<uint64_t, batch_slots> out_ends_{}, in_ends_{};
};

// Whether a pair of this device, with such a ring, and the peer's reach each other. Code::mismatch:
// other ports of the two may.
Status reaches(const VerbsPort& port, size_t ring, const VerbsPair::End& peer);

}  // namespace sluice
