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

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/base/status.h"
#include "transports/verbs/device.h"
#include "transports/verbs/directions.h"

namespace sluice {

// How a queue pair is reached.
struct VerbsAddress {
  uint8_t ethernet = 0, gid_kind = 0, mtu = 0;
  uint8_t reads = 0;  // under way at a time
  uint8_t gid[16]{};
  uint16_t lid = 0, unused = 0;
  uint32_t number = 0, sequence = 0;
};

// What the peer must know of a pair. Sent as it is: another byte order shows in `magic`.
struct VerbsEnd : VerbsAddress {
  static constexpr uint32_t expected = 0x51554502;
  static constexpr size_t most_lanes = 8;

  uint32_t magic = expected;
  uint32_t ring_bytes = 0, key = 0, unused_too = 0;
  uint64_t ring = 0;
  VerbsAddress lanes[most_lanes]{};  // for reads (lanes.h); without any: there is none
};

class VerbsPair {
 public:
  using End = VerbsEnd;
  static constexpr uint32_t max_batches = verbs_max_batches;

  // A pair writes only while it works. What arrived before it broke or was stopped can be read.
  enum class State : uint8_t {
    working,
    broken,    // the device still reports what has arrived
    hopeless,  // broken, and the device may report nothing more
    stopped,   // the peer has ended; the device still reports
    silent     // stopped, and the device may report nothing more
  };
  enum class Event : uint8_t {
    error,
    silence,  // an error, after which the device may report nothing more
    stop      // the peer has ended
  };
  // What a state becomes.
  static State after(State state, Event event);

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
  const std::shared_ptr<VerbsDevice>& device() const { return device_; }

  // Posts a write of no meaning, as long as the longest packet, into the peer's ring. Once, before
  // anything is written.
  void send_probe();
  bool sent_probe() const { return out_.has_written(); }
  // Takes completions: whether the peer's probe has come, and whether this side's too has arrived.
  bool has_probe();
  bool tried() { return has_probe() && out_.has_completed_any(); }

  // Both return how many bytes they moved. They take completions first if these are needed: for
  // anything to read, and for room to write.
  size_t write(std::span<const iovec> runs);
  size_t read(std::span<const iovec> runs);
  // Takes completions, and returns whether there is anything to read, or an error.
  bool has_arrived();
  // Takes all completions that there are.
  void poll();
  size_t readable() const { return in_.readable(); }
  // Whether everything written is in the peer's memory, or never will be.
  bool delivered();
  // Whether all bytes are, as far as poll() knows. (Credits may be on their way.)
  bool has_completed() const { return out_.have_bytes_completed(); }
  // The peer has ended, but the device may not have reported yet all that has arrived: has it do
  // so. Nothing more arrives or leaves.
  void stop();
  // Stopped, and poll() has found everything that arrived, or the device never will report it.
  bool stopped() const {
    return state_ == State::silent || (state_ == State::stopped && !in_.has_requests());
  }
  // Takes the device's asynchronous events; the pair may fail by them. A system call.
  void check_events();
  // Arms the device's descriptor for this pair. False if there is something to do already.
  bool sleeps(bool reads, bool writes);
  void awake() { device_->awake(); }
  int descriptor() const { return device_->descriptor(); }

  bool works() const { return state_ == State::working; }
  // errno and text if the pair is broken; what arrived before can still be read.
  int error() const { return error_; }
  const std::string& failure() const { return failure_; }

 private:
  static constexpr uint32_t receives_at_once = 8;  // posted

  VerbsPair(std::shared_ptr<VerbsDevice> device, size_t ring);
  Status make_parts();
  const SluiceVerbs& table() const { return device_->table(); }
  void fail(int error, const std::string& what);
  void fail(const std::string& what);
  bool is_stopping() const { return state_ == State::stopped || state_ == State::silent; }
  std::string reason_of(int status);

  size_t room() const { return works() ? out_.room() : 0; }
  bool write(const std::byte* from, size_t left);
  void post_batch();
  bool post(std::span<SluiceVerbsWrite> writes);
  uint32_t immediate(size_t bytes);
  bool post_empty(bool has_immediate);
  void give_credit();
  void arm();
  void complete(const SluiceVerbsDone& done);
  void take_immediate(uint32_t immediate);
  void renew_receives();

  const std::shared_ptr<VerbsDevice> device_;
  const size_t ring_bytes_;
  std::unique_ptr<VerbsMemory> ring_, staging_;
  SluiceVerbsQueue queue_{};
  uint32_t sequence_ = 0;
  End peer_;
  size_t max_batch_ = 0;
  State state_ = State::working;
  int error_ = 0;  // not 0: broken, or it was before it was stopped
  std::string failure_;
  bool heard_ = false;  // an immediate has come
  bool armed_ = false;  // and no completion was found since
  VerbsSends out_;
  VerbsReceives in_;
};

// How one of this device's queue pairs is reached.
VerbsAddress address_of(const VerbsDevice& device, uint32_t number, uint32_t sequence);
// How a queue pair of this device reaches that one of the peer's.
SluiceVerbsWay way_to(const VerbsDevice& device, const VerbsAddress& peer, uint32_t own_sequence);

// Whether queue pairs of this port and of the peer's reach each other. Code::mismatch: other ports
// of the two may.
Status reaches(const VerbsPort& port, const VerbsAddress& peer);
// The same of pairs with such a ring.
Status reaches(const VerbsPort& port, size_t ring, const VerbsPair::End& peer);

}  // namespace sluice
