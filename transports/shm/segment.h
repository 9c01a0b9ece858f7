// SPDX-License-Identifier: BSD-3-Clause
//
// A piece of memory that some processes of a host map: a file in /dev/shm with mode 0600, whose
// name is removed once all have it open, so that nothing is left when they are gone, whichever way
// they go. Each process holds a lock on one byte of the file for as long as it lives (fcntl(2): not
// inherited by its children); the others can look whether it does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/status.h"

namespace sluice {

class Segment {
 public:
  using Name = std::array<char, 40>;  // zero-terminated

  // Makes one, zeroed, with all its memory reserved, so that no later access can fail: an error
  // where /dev/shm has no room.
  static Result<Segment> create(size_t bytes);
  // Opens one that another process of the same user made. An error if it can't be seen from here.
  static Result<Segment> open(const Name& name, size_t bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  std::byte* data() const { return data_; }
  const Name& name() const { return name_; }
  // Nobody can open it any more.
  void remove_name();

  // This process is number `index` of it. False if the kernel grants no lock.
  bool sign(uint32_t index);
  // Whether the process that signed as that number lives. (Not to be asked of itself.)
  bool lives(uint32_t index) const;

 private:
  Segment(const Name& name, int file, std::byte* data, size_t bytes, bool named)
      : name_(name), file_(file), data_(data), bytes_(bytes), named_(named) {}

  Name name_;
  int file_;
  std::byte* data_;
  size_t bytes_;
  bool named_;  // by us, and not removed yet
};

}  // namespace sluice
