// SPDX-License-Identifier: BSD-3-Clause
//
// A buffer with a given offset into its page. Copy speed depends on the offset (src/base/copy.h),
// which malloc would leave to chance.
//
// Memory of a device has a mirror that the processor reads and writes; push and pull copy all of
// it. Other memory is its own mirror, and these do nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "osu/device.h"

namespace sluice::osu {

class Memory {
 public:
  static constexpr size_t page = 4096;

  explicit Memory(size_t bytes, size_t offset, Place place = Place::host)
      : offset_(offset),
        whole_((offset + bytes + page) / page * page),
        pages_(nullptr, Free{place}) {
    pages_.reset(allocate_on(place, whole_ + page));
    if (!pages_) throw std::bad_alloc();
    if (place == Place::device) mirror_.resize(room());
  }
  void* get() const {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(pages_.get());
    return reinterpret_cast<std::byte*>((begin + page - 1) / page * page) + offset_;
  }
  bool lies_at(size_t offset) const {
    return reinterpret_cast<uintptr_t>(get()) % page == offset % page;
  }
  // Bytes from get() to the end of the memory: the requested bytes and some more.
  size_t room() const { return whole_ - offset_; }

  void* mirror() { return mirror_.empty() ? get() : mirror_.data(); }
  const void* mirror() const { return mirror_.empty() ? get() : mirror_.data(); }
  void push() const {
    if (!mirror_.empty()) copy_to_device(get(), mirror_.data(), mirror_.size());
  }
  void pull() {
    if (!mirror_.empty()) copy_from_device(mirror_.data(), get(), mirror_.size());
  }

 private:
  struct Free {
    Place place;
    void operator()(void* pages) const { free_on(place, pages); }
  };
  const size_t offset_, whole_;
  std::unique_ptr<void, Free> pages_;
  std::vector<std::byte> mirror_;
};

}  // namespace sluice::osu
