// SPDX-License-Identifier: BSD-3-Clause
//
// The program's memory, registered with a network card for as long as a call lasts: in chunks, when
// the first message of a chunk is posted, and once for all messages of the call. How much may be
// registered at a time is bounded.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/registrations.h"
#include "transports/transport.h"
#include "transports/verbs/device.h"

namespace sluice {

// Whether any of the program's memory can be registered; if not, why.
Status can_register_program_memory(const VerbsDevice& device);

class ProgramMemory {
 public:
  static constexpr size_t chunk = size_t{4} << 20;

  // most: bytes at a time, of this process.
  explicit ProgramMemory(size_t most) : most_(most) {}

  // Registers what is not, of all chunks that the message touches, for the card to fill (or else
  // for the peer to read). Adds the message's memory to `parts`, which each lie in one chunk.
  // False: it can't be. May throw std::bad_alloc. System calls.
  bool reach(const std::shared_ptr<VerbsDevice>& device, const Operation& message, bool is_written,
             std::vector<Bytes>* parts);
  // Registers this memory, not the program's, for the peer to read. Without `hold`: it can't be.
  Registration lend(const std::shared_ptr<VerbsDevice>& device, Bytes memory);

  // Until when to wait for a read that is to be stopped: a card has done it by then, unless
  // something is wrong on the way.
  std::chrono::steady_clock::time_point deadline_to_stop() const {
    const auto now = std::chrono::steady_clock::now();
    return now < impatient_until_ ? now : now + std::chrono::milliseconds(100);
  }
  // One was not done by then.
  void note_late() {
    impatient_until_ = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  }

 private:
  static constexpr uint32_t most_failures = 16;  // in a row. After these one in `tries` is tried:
  static constexpr uint32_t tries = 16;          // other memory, or later, may be registered

  Registration add(const std::shared_ptr<VerbsDevice>& device, Bytes memory, bool is_written);
  void note_failure(const std::string& why);
  void tell(const std::string& why);

  const size_t most_;
  // (Shared with what is registered.)
  const std::shared_ptr<std::atomic<size_t>> pinned_ = std::make_shared<std::atomic<size_t>>(0);
  std::chrono::steady_clock::time_point impatient_until_{};
  uint32_t failures_ = 0;  // in a row, those not tried counted
  bool has_told_ = false;
};

}  // namespace sluice
