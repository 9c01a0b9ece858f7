// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

// A FIFO of a plan's steps, or of other small numbers. Each is in it at most once.
class StepQueue {
 public:
  // Empties it, and makes room for `steps` steps. May throw std::bad_alloc.
  void reset(size_t steps) {
    ring_.resize(steps);
    head_ = count_ = 0;
  }
  bool empty() const { return count_ == 0; }
  uint32_t front() const { return ring_[head_]; }
  void push(uint32_t step) {
    const size_t tail = head_ + count_++;
    ring_[tail < ring_.size() ? tail : tail - ring_.size()] = step;
  }
  void pop() {
    head_ = head_ + 1 == ring_.size() ? 0 : head_ + 1;
    --count_;
  }

 private:
  std::vector<uint32_t> ring_;
  size_t head_ = 0, count_ = 0;
};

}  // namespace sluice
