// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "src/memory/devices.h"

namespace sluice {

// Staging memory for one side (input or output) of calls, kept between calls.
class Staging {
 public:
  Staging() = default;
  ~Staging() { unpin(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // At least so many bytes; nullptr if out of memory. The contents are undefined. For a place on a
  // device it is pinned memory if there is some to spare.
  std::byte* reserve(size_t bytes, const DevicePlace& place);
  // Gives the memory back if it is more than 256 KB: to the process's spares, or to the heap.
  void trim();
  // Gives pinned memory back.
  void unpin() {
    if (pinned_) give_back_pinned(std::exchange(pinned_, nullptr));
  }
  // Leaves the memory to copies that may still run, for good.
  void abandon() {
    pinned_ = nullptr;
    (void)data_.release();
    bytes_ = 0;
  }

  std::vector<size_t> counts, offsets;  // of View
  std::vector<uint32_t> left, tickets;  // of StagedSide

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::byte* reserve(size_t bytes);

  std::unique_ptr<std::byte, Free> data_;
  size_t bytes_ = 0;
  std::byte* pinned_ = nullptr;
};

// For both sides.
struct StagingPair {
  Staging input, output;
};

}  // namespace sluice
