// SPDX-License-Identifier: BSD-3-Clause
//
// The type of a buffer's elements, as far as moving them needs: how many bytes an element carries,
// and where these lie in memory.
#pragma once

#include <cstddef>

#include "src/memory/layout.h"

namespace sluice {

struct ElementType {
  size_t size = 0;  // bytes of its data: what is on the wire
  // Bytes from the buffer's address to the first data byte. (MPI's true lower bound may be lower:
  // MPICH also counts components without data.)
  ptrdiff_t start = 0;
  ptrdiff_t extent = 0;            // bytes from one element to the next
  const Layout* layout = nullptr;  // null only if dense
  bool run = false;  // an element's `size` bytes are contiguous, in the order of its layout

  // Whether n consecutive elements are contiguous, that is, lie as if they were packed.
  bool is_dense(size_t n) const {
    return size == 0 || (run && (n <= 1 || extent == static_cast<ptrdiff_t>(size)));
  }
};

}  // namespace sluice
