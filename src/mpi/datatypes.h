// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes of MPI, as far as moving them goes: how many bytes they carry, and whether these lie
// together in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/status.h"
#include "src/mpi/real.h"

namespace sluice {

// The address so many bytes from a buffer's. (By way of integers: with MPI_BOTTOM a buffer is null
// and all is in the displacement.)
inline std::byte* offset_by(const void* buffer, ptrdiff_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(buffer) +
                                      static_cast<uintptr_t>(bytes));
}

struct Datatype {
  MPI_Datatype handle{};
  size_t size = 0;  // bytes of its type signature: what is on the wire
  ptrdiff_t start =
      0;  // where the data begins, in bytes from the buffer's address (true lower bound)
  ptrdiff_t extent = 0;  // from one element to the next
  bool run = false;      // an element is `size` bytes one after another, in the signature's order

  // Whether n elements in a row are one run, that is, already as they would be packed.
  bool is_dense(size_t n) const {
    return size == 0 || (run && (n <= 1 || extent == static_cast<ptrdiff_t>(size)));
  }
};

// The description of a type, worked out at its first use and kept with it (as an attribute) until
// it is freed. nullptr for MPI_DATATYPE_NULL, and where MPI refuses to describe it.
const Datatype* find_datatype(MPI_Datatype handle);

// Copies n elements at `user` into n * size bytes at `dense`, in the order of the type signature.
// Nothing is allocated.
Status pack(const Datatype& type, const void* user, size_t n, std::byte* dense, MPI_Comm comm);
// And back. Bytes that the type does not name are left alone.
Status unpack(const Datatype& type, const std::byte* dense, size_t n, void* user, MPI_Comm comm);

}  // namespace sluice
