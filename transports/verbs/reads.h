// SPDX-License-Identifier: BSD-3-Clause
//
// Reads of the peer's memory by a network card (RDMA READ). They have a queue pair of their own,
// beside that of the byte stream (pair.h), in both directions. Whatever happens to it, the stream
// goes on: without it messages are sent.
//
// The reads of a message are posted as one list. The last one reads the loan's word, and begins
// when the others are complete (a fence). Only it is signalled; an error completes any.
//
// A read that is under way writes to a receive's memory. Who wants that memory back waits a moment
// for the card, and then ends the queue pair.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transports/peer_memory.h"
#include "transports/registrations.h"
#include "transports/verbs/device.h"
#include "transports/verbs/pair.h"
#include "transports/verbs/program_memory.h"

namespace sluice {

class VerbsReads {
 public:
  using Get = PeerMemory::Get;
  static constexpr uint32_t most_gets = 16;  // messages under way
  static constexpr uint32_t most_reads = 8;  // of a message, beside the word's

  // least: bytes of what the message is a segment of. nullptr: the device has no such queue pair.
  static std::unique_ptr<VerbsReads> make(const std::shared_ptr<VerbsDevice>& device,
                                          std::shared_ptr<ProgramMemory> memory, size_t least);
  ~VerbsReads();
  VerbsReads(const VerbsReads&) = delete;
  VerbsReads& operator=(const VerbsReads&) = delete;

  // What the peer must know.
  VerbsAddress address() const;
  // False: there will be no reads. Once.
  bool connect(const VerbsAddress& peer);

  bool works() const { return state_ == State::connected; }
  // Whether it reads what was lent so.
  bool reads_for(const LentMessage& lent) const { return works() && lent.carrier == theirs_; }
  // As of PeerMemory.
  bool lend(const Operation& send, Bytes words, LentMessage* lent);
  Get get(const LentMessage& lent, Operation* receive, Getter* getter);
  bool report();
  void stop(Operation* receive);
  void end() { break_up("the connection has ended, or the peer's reads have"); }
  void keep(const Operation& send);

  // Arms the device's descriptor for what is under way. False if there is something to report.
  bool may_sleep();
  // Whether it has broken. True once.
  bool has_broken() { return std::exchange(has_broken_, false); }

 private:
  enum class State : uint8_t { made, connected, broken };
  struct Reading {
    enum class State : uint8_t { free, under_way, wrong, right } state = State::free;
    Operation* receive = nullptr;
    Getter* getter = nullptr;
    uint64_t value = 0;  // of the loan's word
  };
  using Posted = std::vector<SluiceVerbsRead>;

  VerbsReads(std::shared_ptr<VerbsDevice> device, std::shared_ptr<ProgramMemory> memory,
             size_t least)
      : device_(std::move(device)), memory_(std::move(memory)), least_(least) {}
  bool make_parts();
  const SluiceVerbs& table() const { return device_->table(); }
  uint64_t* word(size_t at) const { return reinterpret_cast<uint64_t*>(words_->data()) + at; }
  bool is_under_way() const;
  Reading* find_free();
  Posted plan(const LentMessage& lent, const Operation& receive, size_t at);
  void poll();
  void complete(const SluiceVerbsDone& done);
  void wait_for(const Reading& reading);
  void break_up(const std::string& why);

  const std::shared_ptr<VerbsDevice> device_;
  const std::shared_ptr<ProgramMemory> memory_;
  const size_t least_;
  SluiceVerbsQueue queue_{};
  uint32_t sequence_ = 0;
  uint64_t theirs_ = 0;  // the peer's queue pair, as LentMessage::carrier
  State state_ = State::made;
  std::unique_ptr<VerbsMemory> words_;  // where the loans' words are read to, one a reading
  Registration loans_;                  // this side's words, once anything is lent
  std::array<Reading, most_gets> readings_;
  bool has_broken_ = false;                        // and nobody knows yet
  bool armed_ = false;                             // and no completion was found since
  std::vector<std::shared_ptr<const void>> kept_;  // what the peer may still read
};

}  // namespace sluice
