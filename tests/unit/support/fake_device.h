// SPDX-License-Identifier: BSD-3-Clause
//
// A device whose memory the processor can't touch: its addresses are no addresses of the process.
// It does its work in order and late, only when it is polled, some of it at a time. A slot of host
// memory holds rubbish from when a copy to it begins until the device makes the copy, and after the
// device has made a copy from it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "src/engine/device_work.h"
#include "src/reduce/kernel.h"

namespace sluice {

class FakeDevice final : public DeviceWork {
 public:
  // Without a seed it works only when told to (`work`).
  explicit FakeDevice(std::optional<uint64_t> seed, Reduction reduction = {}, size_t element = 1)
      : random_(seed.value_or(0)), polls_work_(seed), reduction_(reduction), element_(element) {}

  // Memory of the device, with this content or undefined.
  std::byte* allocate(size_t bytes, const std::byte* content = nullptr) {
    auto memory = std::make_unique<std::byte[]>(bytes + 1);
    std::memset(memory.get(), 0xab, bytes + 1);
    if (content && bytes > 0) std::memcpy(memory.get(), content, bytes);
    const auto begin = reinterpret_cast<uintptr_t>(memory.get());
    memory_[begin] = {std::move(memory), bytes};
    return reinterpret_cast<std::byte*>(begin + bias);
  }
  // What is there.
  std::vector<std::byte> read(const std::byte* device, size_t bytes) {
    if (bytes == 0) return {};
    const std::byte* const begin = find(device, bytes);
    return {begin, begin + bytes};
  }

  std::byte* scratch(size_t bytes) override {
    asked.scratch += bytes;
    return lacks_memory ? nullptr : allocate(bytes);
  }
  std::byte* bounce(size_t bytes) override {
    asked.bounce += bytes;
    bounce_.assign(bytes, std::byte{0xcd});
    return lacks_memory ? nullptr : bounce_.data();
  }

  void reduce(const std::byte* left, const std::byte* right, std::byte* out,
              size_t elements) override {
    const size_t bytes = elements * element_;
    std::byte* const to = find(out, bytes);
    begin([=, this, first = find(left, bytes), second = find(right, bytes)] {
      reduction_.kernel(first, second, to, elements, reduction_.context);
    });
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    begin([=, target = find(to, bytes), source = find(from, bytes)] {
      std::memmove(target, source, bytes);
    });
  }
  void copy_out(std::byte* host, const std::byte* device, size_t bytes) override {
    EXPECT_TRUE(is_bounce(host, bytes));
    std::memset(host, 0xee, bytes);
    begin([=, source = find(device, bytes)] { std::memcpy(host, source, bytes); });
  }
  void copy_in(std::byte* device, const std::byte* host, size_t bytes) override {
    EXPECT_TRUE(is_bounce(host, bytes));
    begin([=, target = find(device, bytes)] {
      std::memcpy(target, host, bytes);
      std::memset(const_cast<std::byte*>(host), 0xdd, bytes);
    });
  }

  uint32_t ticket() override {
    tickets_.push_back(begun_);
    return static_cast<uint32_t>(tickets_.size());
  }
  bool reached(uint32_t ticket) override {
    if (polls_work_) work(random_() % 3);
    return failure_.ok() && tickets_.at(ticket - 1) <= done_;
  }
  const Status& failure() const override { return failure_; }
  std::string name() const override { return "a fake device"; }

  // Does so many pieces of the work that has begun, if there are so many.
  void work(size_t pieces) {
    for (; pieces > 0 && !queue_.empty() && failure_.ok(); --pieces) {
      if (++done_ == fails_at) {
        failure_ = {Code::unavailable, "a fake failure"};
        return;
      }
      queue_.front()();
      queue_.pop_front();
    }
  }
  size_t begun() const { return begun_; }

  DeviceNeeds asked;
  bool lacks_memory = false;
  size_t fails_at = 0;  // the piece of work that fails, counted from 1; 0: none

 private:
  static constexpr uintptr_t bias = uintptr_t{1} << 62;
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    size_t bytes;
  };

  void begin(std::function<void()> work) {
    if (!failure_.ok()) return;
    ++begun_;
    queue_.push_back(std::move(work));
  }
  // The memory behind an address of the device, which must have been allocated.
  std::byte* find(const std::byte* device, size_t bytes) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(device) - bias;
    auto block = memory_.upper_bound(begin);
    if (block != memory_.begin()) --block;
    const bool is_there = block != memory_.end() && block->first <= begin &&
                          begin + bytes <= block->first + block->second.bytes;
    if (is_there) return reinterpret_cast<std::byte*>(begin);
    ADD_FAILURE() << "no memory of the device";
    return memory_.at(memory_.begin()->first).memory.get();
  }
  bool is_bounce(const std::byte* host, size_t bytes) const {
    return host >= bounce_.data() && host + bytes <= bounce_.data() + bounce_.size();
  }

  std::mt19937_64 random_;
  const bool polls_work_;
  const Reduction reduction_;
  const size_t element_;
  std::map<uintptr_t, Block> memory_;
  std::vector<std::byte> bounce_;
  std::deque<std::function<void()>> queue_;
  std::vector<size_t> tickets_;
  size_t begun_ = 0, done_ = 0;
  Status failure_;
};

}  // namespace sluice
