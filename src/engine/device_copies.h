// SPDX-License-Identifier: BSD-3-Clause
//
// The copies between a device and the host memory of a call's messages. Each posted segment has a
// slot of host memory. A segment that is sent is copied to its slot first, and posted when the copy
// is done. A segment that has been received is copied from its slot, which is free for the next one
// when that copy is done.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "src/engine/device_work.h"
#include "src/engine/step_queue.h"

namespace sluice {

class DeviceCopies {
 public:
  // The device's use of a slot.
  enum class Use : uint8_t { none, fills, empties };
  struct Done {
    uint32_t slot;
    Use use;
  };

  // For a call on `device`, with so many slots. May throw std::bad_alloc.
  void reset(DeviceWork* device, size_t slots) {
    device_ = device;
    last_ = 0;
    slots_.assign(slots, {});
    under_way_.reset(slots);
  }
  // The device has just been given copies to a slot, or from it. The slot must be free.
  void begin(uint32_t slot, Use use) {
    slots_[slot] = {use, device_->ticket()};
    under_way_.push(slot);
  }
  Use use(uint32_t slot) const { return slots_[slot].use; }
  // The oldest copy, if it is done; its slot becomes free. (A younger one is not done before it.)
  std::optional<Done> pop_done() {
    if (under_way_.empty()) return {};
    const uint32_t slot = under_way_.front();
    if (!device_->reached(slots_[slot].ticket)) return {};
    under_way_.pop();
    return Done{slot, std::exchange(slots_[slot].use, Use::none)};
  }
  bool are_under_way() const { return !under_way_.empty(); }
  // To be asked once the device gets no more work: whether it has done all. A ticket is taken at
  // the first time.
  bool have_ended() {
    if (last_ == 0) last_ = device_->ticket();
    return device_->reached(last_);
  }

 private:
  struct Slot {
    Use use = Use::none;
    uint32_t ticket = 0;
  };

  DeviceWork* device_ = nullptr;
  uint32_t last_ = 0;  // ticket
  std::vector<Slot> slots_;
  StepQueue under_way_;
};

}  // namespace sluice
