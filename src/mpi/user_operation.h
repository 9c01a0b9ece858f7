// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions with user-defined operations. Their host kernel is MPI's own MPI_Reduce_local, which
// knows how to call the functions of each language.
//
// The engine's elements are packed, `size` bytes each; the program's function expects the layout of
// its datatype. If the two differ, operands are unpacked into memory of this class, a bounded
// number at a time, and the result is packed again.
#pragma once

#include <cstddef>
#include <memory>

#include "src/base/status.h"
#include "src/mpi/datatype.h"
#include "src/mpi/real.h"
#include "src/reduce/kernel.h"

namespace sluice {

// Belongs to one call. Must not move while the call runs: its address is the kernel's context.
class UserOperation {
 public:
  UserOperation(MPI_Op op, const Datatype& type) : op_(op), type_(type) {}
  UserOperation(const UserOperation&) = delete;
  UserOperation& operator=(const UserOperation&) = delete;

  // Allocates memory for a call on vectors of so many elements; nothing is allocated after that.
  Status prepare(size_t elements);

  // A ReduceKernel: calls the program's function in the calling thread. context: a prepared
  // UserOperation.
  static void kernel(const void* left, const void* right, void* out, size_t n, const void* context);

  // The first error of the kernel, which has no return value.
  const Status& failure() const { return failure_; }

 private:
  // Whether consecutive packed elements lie just as the datatype lays them out.
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
