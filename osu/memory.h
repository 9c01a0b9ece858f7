// SPDX-License-Identifier: BSD-3-Clause
//
// A buffer that begins so many bytes into a page: how fast copies are depends on that
// (src/base/copy.h), and it is left to chance otherwise.
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
  // From get() on: all that was asked for, and more.
  size_t room() const { return whole_ - offset_; }

 private:
  struct Free {
    void operator()(void* pages) const { std::free(pages); }
  };
  const size_t offset_, whole_;
  std::unique_ptr<void, Free> pages_;
};

}  // namespace sluice::osu
