// SPDX-License-Identifier: BSD-3-Clause
//
// A call's memory as far as a network card may access it. Its messages share what is registered.
// It ends with the call: the program may free its memory afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sluice {

struct Registration {
  std::byte* data = nullptr;
  size_t bytes = 0;
  const void* card = nullptr;
  bool is_writable = false;  // by the card
  uint32_t local_key = 0, remote_key = 0;
  std::shared_ptr<const void> hold{};  // as long as anybody has this, it is registered

  bool covers(const std::byte* from, size_t size) const {
    return from >= data && size <= bytes && static_cast<size_t>(from - data) <= bytes - size;
  }
};

class Registrations {
 public:
  // nullptr: none, so far.
  const Registration* find(const void* card, const std::byte* from, size_t size,
                           bool is_written) const {
    for (auto each = all_.rbegin(); each != all_.rend(); ++each) {
      if (each->card == card && each->covers(from, size) && (each->is_writable || !is_written)) {
        return &*each;
      }
    }
    return nullptr;
  }
  // visit(registration): for each of the card's that has any of these bytes.
  template <typename Visit>
  void visit(const void* card, const std::byte* from, size_t size, const Visit& visit) const {
    for (const Registration& each : all_) {
      if (each.card == card && each.data < from + size && from < each.data + each.bytes) {
        visit(each);
      }
    }
  }
  const Registration* add(Registration made) { return &all_.emplace_back(std::move(made)); }
  // No message of the call may be under way. System calls.
  void clear() { all_.clear(); }

 private:
  std::vector<Registration> all_;
};

}  // namespace sluice
