// SPDX-License-Identifier: BSD-3-Clause
//
// A collective call in MPI's terms, after its arguments have been checked: input and output, as
// elements of datatypes. Placement (placement.h) turns it into the engine's terms: contiguous
// memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "src/engine/call.h"
#include "src/memory/devices.h"
#include "src/mpi/datatypes.h"
#include "src/mpi/thread_state.h"

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

// Input or output on this rank: blocks of elements of one datatype.
struct Side {
  const void* buffer = nullptr;
  const Datatype* type = nullptr;  // nullptr: this rank has no such side
  uint32_t blocks = 1;
  size_t count = 0;        // elements of each block
  Numbers counts;          // if set, elements of each block, in place of `count`
  Numbers displacements;   // start of each block in extents; unset: consecutive
  DevicePlace place = {};  // of its data

  size_t elements(uint32_t block) const {
    return counts ? static_cast<size_t>(counts[block]) : count;
  }
  size_t total_elements() const;
  size_t bytes() const { return total_elements() * type->size; }
};

struct Exchange {
  Call call;  // complete except for its views
  Side input, output;
  // The user-defined operation, if the call reduces with one. The kernel's context must still be
  // set (user_operation.h).
  std::optional<MPI_Op> user_op;
  // The input lies in the output's memory, and no algorithm works in place (MPI_IN_PLACE in
  // alltoall, alltoallv and reduce_scatter): the input must be copied first.
  bool set_aside = false;
  // The program gave the same memory for input and output, which MPI does not allow. alias_at:
  // where such an input lies, in bytes from the output's buffer.
  bool aliased = false;
  ptrdiff_t alias_at = 0;
  // The program passed MPI_IN_PLACE.
  bool in_place = false;
  // The output holds the data before the call, which does not change it (at a broadcast's root).
  bool filled = false;
  // The count of freed types before the types of this call were looked up: if the count has
  // changed, a handle may mean another type.
  uint64_t types_freed = datatypes_freed.load(std::memory_order_acquire);
};

}  // namespace sluice
