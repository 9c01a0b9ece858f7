// SPDX-License-Identifier: BSD-3-Clause
//
// Where the bytes of a datatype lie in memory, and how they are packed: loops over runs of bytes,
// nested as the datatype was constructed. Any stretch of the packed bytes can be moved by itself,
// wherever it begins, so that even a single huge element goes piece by piece. (The idea is that of
// dataloops: Ross, Miller and Gropp, "Implementing Fast and Reusable Datatype Processing", 2003.)
// Knows nothing of MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sluice {

// The address so many bytes from a buffer's. (By way of integers: with MPI_BOTTOM a buffer is null
// and all is in the displacement.)
inline std::byte* offset_by(const void* buffer, ptrdiff_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(buffer) +
                                      static_cast<uintptr_t>(bytes));
}

// One element of a type: its bytes in the order of the type map. Addresses count from the element's
// own. A value that does not change once it is built.
class Layout {
 public:
  Layout() = default;  // of no bytes

  // So many bytes in a row.
  static Layout run(size_t bytes);
  // n times this, `stride` bytes apart.
  Layout repeated(size_t n, ptrdiff_t stride) const;
  // Adds another behind: its bytes come after all so far, its address is `at`.
  void append(ptrdiff_t at, const Layout& next);

  size_t bytes() const { return bytes_; }
  // Where the first byte lies; 0 if there is none.
  ptrdiff_t start() const {
    if (loops_.empty()) return 0;
    return loops_[0].at + (loops_[0].inner ? loops_[0].inner->start() : 0);
  }
  // Whether the bytes lie in a row, in order.
  bool is_run() const { return loops_.size() == 1 && is_single_run(loops_[0]); }

  // Copies bytes [begin, begin + size) of the elements that lie `extent` apart from `user` on, to
  // or from `dense`. Allocates nothing.
  void pack(const void* user, ptrdiff_t extent, size_t begin, size_t size, std::byte* dense) const;
  void unpack(void* user, ptrdiff_t extent, size_t begin, size_t size,
              const std::byte* dense) const;

 private:
  class Mover;
  void move(const Mover& mover, std::byte* user, ptrdiff_t extent, size_t begin, size_t size,
            std::byte* dense) const;

  struct Loop {
    size_t begin = 0;  // bytes before it
    ptrdiff_t at = 0;
    size_t count = 1;  // turns, `stride` apart, each of `bytes`: a run, or what `inner` says
    ptrdiff_t stride = 0;
    size_t bytes = 0;
    std::shared_ptr<const Layout> inner;
  };
  static bool is_single_run(const Loop& loop) { return loop.count == 1 && !loop.inner; }

  std::vector<Loop> loops_;  // one after another
  size_t bytes_ = 0;
};

}  // namespace sluice
