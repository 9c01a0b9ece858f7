// SPDX-License-Identifier: BSD-3-Clause
//
// A buffer with a given offset into its page. Copy speed depends on the offset (src/base/copy.h),
// which malloc would leave to chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace sluice::osu {

class Memory {
 public:
  static constexpr size_t page = 4096;

  Memory(size_t bytes, size_t offset)
      : offset_(offset), whole_((offset + bytes + page) / page * page) {
    pages_.reset(std::aligned_alloc(page, whole_));
    if (!pages_) throw std::bad_alloc();
  }
  void* get() const { return static_cast<std::byte*>(pages_.get()) + offset_; }
  bool lies_at(size_t offset) const {
    return reinterpret_cast<uintptr_t>(get()) % page == offset % page;
  }
  // Bytes from get() to the end of the memory: the requested bytes and some more.
  size_t room() const { return whole_ - offset_; }

 private:
  struct Free {
    void operator()(void* pages) const { std::free(pages); }
  };
  const size_t offset_, whole_;
  std::unique_ptr<void, Free> pages_;
};

}  // namespace sluice::osu
