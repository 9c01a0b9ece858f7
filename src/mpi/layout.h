// SPDX-License-Identifier: BSD-3-Clause
//
// Where the bytes of a datatype lie in memory, and how they are packed: loops over runs of bytes,
// nested as the datatype was constructed. Any stretch of the packed bytes can be moved by itself,
// wherever it begins, so that even a single huge element goes piece by piece. (The idea is that of
// dataloops: Ross, Miller and Gropp, "Implementing Fast and Reusable Datatype Processing", 2003.)
// Knows nothing of MPI.
//
// However deeply datatypes are nested, at most some 60 loops and lists are: each has at most half
// of the bytes of the one around it. So functions here may recurse over them.
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
// own. A value that does not change once it is built; copies share the list, if there is one.
class Layout {
 public:
  class List;

  Layout() = default;  // of no bytes

  // So many bytes in a row.
  static Layout run(size_t bytes);
  // n times this, `stride` bytes apart.
  Layout repeated(size_t n, ptrdiff_t stride) const;
  // This, `at` bytes further.
  Layout moved(ptrdiff_t at) const;

  size_t bytes() const { return count_ * bytes_; }
  // Where the first byte lies; 0 if there is none.
  ptrdiff_t start() const;
  // Whether the bytes lie in a row, in order.
  bool is_run() const { return bytes_ > 0 && count_ == 1 && !list_; }

  // Copies bytes [begin, begin + size) of the elements that lie `extent` apart from `user` on, to
  // or from `dense`. Allocates nothing.
  void pack(const void* user, ptrdiff_t extent, size_t begin, size_t size, std::byte* dense) const;
  void unpack(void* user, ptrdiff_t extent, size_t begin, size_t size,
              const std::byte* dense) const;

 private:
  class Mover;
  void move(const Mover& mover, std::byte* user, ptrdiff_t extent, size_t begin, size_t size,
            std::byte* dense) const;

  // A loop: turns, `stride` bytes apart, each of so many bytes: those of the list, else a run.
  ptrdiff_t at_ = 0;
  size_t count_ = 1;
  ptrdiff_t stride_ = 0;
  size_t bytes_ = 0;
  std::shared_ptr<const List> list_;
};

// Layouts one after another, as they are collected.
class Layout::List {
 public:
  List() = default;
  // For so many of them, which may turn out to be fewer.
  explicit List(size_t layouts) { pieces_.reserve(layouts + 1); }

  // Adds another behind: its bytes come after all so far, its address is `at`.
  void append(ptrdiff_t at, const Layout& next);
  // All of them.
  Layout finish() &&;

 private:
  friend class Layout;
  static constexpr size_t none = ~size_t{0};

  struct Piece {
    size_t begin = 0;    // bytes before it
    ptrdiff_t at = 0;    // all there is to say of where it is
    size_t loop = none;  // in loops_; none: a run, up to the next piece's begin
  };
  void add(ptrdiff_t at, const Layout& loop);
  void splice(ptrdiff_t at, const List& list);

  std::vector<Piece> pieces_;  // once finished, one more at the end
  std::vector<Layout> loops_;  // pieces that are alike have one in common
  size_t bytes_ = 0;
};

}  // namespace sluice
