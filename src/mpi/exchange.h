// SPDX-License-Identifier: BSD-3-Clause
//
// A call in MPI's terms, once its arguments are understood: what goes in and what comes out, in
// elements of datatypes. Placement (placement.h) turns it into the engine's terms, dense memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "src/engine/call.h"
#include "src/mpi/datatypes.h"
#include "src/mpi/thread_state.h"

namespace sluice {

// An array of a program's counts or displacements: int, or 64 bits wide (MPI_Count, MPI_Aint) in
// functions for large counts.
class Numbers {
 public:
  Numbers() = default;
  template <std::signed_integral T>
  Numbers(const T* first) : first_(first), is_wide_(sizeof(T) > sizeof(int)) {
    static_assert(sizeof(T) == sizeof(int) || sizeof(T) == sizeof(int64_t));
  }
  explicit operator bool() const { return first_ != nullptr; }
  // The same array.
  bool operator==(const Numbers&) const = default;
  size_t width() const { return is_wide_ ? sizeof(int64_t) : sizeof(int); }
  // Whether the first n are the same, of arrays of one width.
  bool begin_alike(Numbers other, size_t n) const {
    for (size_t i = 0; i < n; ++i) {
      if ((*this)[i] != other[i]) return false;
    }
    return true;
  }
  // The same numbers in other memory, n * width() bytes of it.
  Numbers copied_to(std::byte* memory, size_t n) const {
    Numbers copy = *this;
    copy.first_ = std::memcpy(memory, first_, n * width());
    return copy;
  }
  // The same without the first n.
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
  const Datatype* type = nullptr;  // nullptr: there is no such side
  uint32_t blocks = 1;
  size_t count = 0;       // elements of each block
  Numbers counts;         // instead, elements of each, where they may differ
  Numbers displacements;  // where each begins, in extents; none: one after another

  size_t elements(uint32_t block) const {
    return counts ? static_cast<size_t>(counts[block]) : count;
  }
  size_t total_elements() const;
  size_t bytes() const { return total_elements() * type->size; }
};

struct Exchange {
  Call call;  // all but its views
  Side input, output;
  // The program's own operation, where that is what is reduced with: the call's kernel still needs
  // its context (user_operation.h).
  std::optional<MPI_Op> user_op;
  // The input lies in the output's memory, where an algorithm can't have it (MPI_IN_PLACE in
  // alltoall and reduce_scatter): it must be set aside.
  bool set_aside = false;
  // The program gave the same memory for both, which MPI does not allow: where that is, in bytes
  // from the output's buffer.
  bool aliased = false;
  ptrdiff_t alias_at = 0;
  // MPI_IN_PLACE.
  bool in_place = false;
  // The output holds the data before the call, and the call does not change it (a broadcast's
  // root).
  bool filled = false;
  // Before its types were looked up: a handle may mean another type once one was freed.
  uint64_t types_freed = datatypes_freed.load(std::memory_order_acquire);
};

}  // namespace sluice
