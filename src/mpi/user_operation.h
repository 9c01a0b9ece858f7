// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions with an operation that the program defined: the host kernel of those is MPI's own
// MPI_Reduce_local, which knows how each language's functions are called.
//
// The engine's elements are packed, `size` bytes each; a program's function wants them as its
// datatype lays them out. Where the two differ, operands are unpacked into memory of this class, a
// bounded number at a time, and the result is packed again.
#pragma once

#include <cstddef>
#include <memory>

#include "src/base/status.h"
#include "src/mpi/datatypes.h"
#include "src/mpi/real.h"
#include "src/reduce/kernel.h"

namespace sluice {

// One call's. Stays where it is while the call runs, for the kernel's context is its address.
class UserOperation {
 public:
  UserOperation(MPI_Op op, const Datatype& type) : op_(op), type_(type) {}
  UserOperation(const UserOperation&) = delete;
  UserOperation& operator=(const UserOperation&) = delete;

  // Memory for a call on vectors of so many elements; nothing is allocated after that.
  Status prepare(size_t elements);

  // Calls the program's function, in the caller's thread. Its context is a UserOperation that is
  // prepared.
  static void kernel(const void* left, const void* right, void* out, size_t n, const void* context);

  // What went wrong in the kernel, which can't tell.
  const Status& failure() const { return failure_; }

 private:
  // Whether elements in a row are in the engine's memory just as the program lays them out.
  bool is_laid_out() const { return type_.is_dense(2) && type_.start == 0; }
  Status measure(ptrdiff_t* low, ptrdiff_t* high) const;
  Status combine(const std::byte* left, const std::byte* right, std::byte* out, size_t n) const;
  Status combine_in_place(const std::byte* left, const std::byte* right, std::byte* out,
                          size_t n) const;
  Status combine_apart(const std::byte* left, const std::byte* right, std::byte* out,
                       size_t n) const;
  Status reduce(const void* left, void* right, size_t n) const;

  const MPI_Op op_;
  const Datatype& type_;
  size_t most_ = 0;  // elements at a time
  std::unique_ptr<std::byte[]> memory_;
  std::byte* operands_[2] = {};  // in memory_: where the program's first element begins
  Status failure_;
};

}  // namespace sluice
