// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice {

// A program's array of counts or displacements: int, or 64 bits wide (MPI_Count, MPI_Aint) in the
// MPI_X_c functions.
class Numbers {
 public:
  Numbers() = default;
  template <std::signed_integral T>
  Numbers(const T* first) : first_(first), is_wide_(sizeof(T) > sizeof(int)) {
    static_assert(sizeof(T) == sizeof(int) || sizeof(T) == sizeof(int64_t));
  }
  explicit operator bool() const { return first_ != nullptr; }
  // Whether both are the same array in memory.
  bool operator==(const Numbers&) const = default;
  size_t width() const { return is_wide_ ? sizeof(int64_t) : sizeof(int); }
  // Whether the first n values are equal.
  bool begin_alike(Numbers other, size_t n) const {
    for (size_t i = 0; i < n; ++i) {
      if ((*this)[i] != other[i]) return false;
    }
    return true;
  }
  // The array. T: of `width`.
  template <std::signed_integral T>
  const T* as() const {
    return static_cast<const T*>(first_);
  }
  // Copies the first n values to `memory` (n * width() bytes) and returns that array.
  Numbers copied_to(std::byte* memory, size_t n) const {
    Numbers copy = *this;
    copy.first_ = std::memcpy(memory, first_, n * width());
    return copy;
  }
  // The array without its first n values.
  Numbers from(size_t n) const {
    Numbers rest = *this;
    if (first_) rest.first_ = static_cast<const std::byte*>(first_) + n * width();
    return rest;
  }
  int64_t operator[](size_t index) const {
    if (!is_wide_) return static_cast<const int*>(first_)[index];
    int64_t number;  // MPI's types may be long or long long
    std::memcpy(&number, static_cast<const std::byte*>(first_) + index * sizeof number,
                sizeof number);
    return number;
  }

 private:
  const void* first_ = nullptr;
  bool is_wide_ = false;
};

}  // namespace sluice
