// SPDX-License-Identifier: BSD-3-Clause
//
// Where the bytes of a datatype lie in memory, and how they are packed: loops over runs of bytes,
// nested as the datatype was constructed. Any range of the packed bytes can be moved by itself,
// wherever it begins, so even a single huge element can go in pieces. (The idea is that of
// dataloops: Ross, Miller and Gropp, "Implementing Fast and Reusable Datatype Processing", 2003.)
//
// Loops and lists nest about 60 levels deep at most, however deeply the datatype is nested, because
// each has at most half of the bytes of the one around it. So functions here may recurse over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sluice {

// The address `bytes` after `buffer`. (Computed with integers: with MPI_BOTTOM the buffer is null,
// and the displacement is the address.)
inline std::byte* offset_by(const void* buffer, ptrdiff_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(buffer) +
                                      static_cast<uintptr_t>(bytes));
}

// One element of a type: its bytes in the order of the type map. Offsets count from the element's
// address. Does not change once it is built; copies share the list, if there is one.
class Layout {
 public:
  class List;

  // Moves runs of bytes between elements (`user`) and their packed form (`dense`), in one
  // direction. For memory that the processor can't touch.
  class Copier {
   public:
    virtual ~Copier() = default;
    virtual void copy(std::byte* user, std::byte* dense, size_t bytes) = 0;
    // n runs of so many bytes, which lie `stride` bytes apart from `user` on, and `dense_stride`
    // bytes apart from `dense` on.
    virtual void runs(std::byte* user, ptrdiff_t stride, size_t n, size_t bytes, std::byte* dense,
                      size_t dense_stride) = 0;
  };

  Layout() = default;  // no bytes

  // Contiguous bytes.
  static Layout run(size_t bytes);
  // n copies of this layout, `stride` bytes apart.
  Layout repeated(size_t n, ptrdiff_t stride) const;
  // This layout, moved by `at` bytes.
  Layout moved(ptrdiff_t at) const;

  size_t bytes() const { return count_ * bytes_; }
  // Offset of the first byte; 0 if there are no bytes.
  ptrdiff_t start() const;
  // Whether the bytes are contiguous and in order.
  bool is_run() const { return bytes_ > 0 && count_ == 1 && !list_; }

  // Copies bytes [begin, begin + size) of the packed form between the elements, which lie `extent`
  // bytes apart from `user` on, and `dense`, which holds only these bytes. Allocates nothing.
  void pack(const void* user, ptrdiff_t extent, size_t begin, size_t size, std::byte* dense) const;
  void unpack(void* user, ptrdiff_t extent, size_t begin, size_t size,
              const std::byte* dense) const;
  // Packs or unpacks by a copier, in its direction and in any order of bytes. If loops are nested,
  // the longest one becomes the copier's runs, so there are few runs.
  void move(Copier& copier, const void* user, ptrdiff_t extent, size_t begin, size_t size,
            std::byte* dense) const;

 private:
  template <typename Copies>
  class Mover;
  template <typename Copies>
  void move_by(const Copies& copies, std::byte* user, ptrdiff_t extent, size_t begin, size_t size,
               std::byte* dense) const;

  // A loop: count_ iterations, stride_ bytes apart, of bytes_ bytes each: those of the list, or a
  // run if there is no list.
  ptrdiff_t at_ = 0;
  size_t count_ = 1;
  ptrdiff_t stride_ = 0;
  size_t bytes_ = 0;
  std::shared_ptr<const List> list_;
};

// A sequence of layouts, built by appending.
class Layout::List {
 public:
  List() = default;
  // Reserves memory for that many appended layouts.
  explicit List(size_t layouts) { pieces_.reserve(layouts + 1); }

  // Appends a layout, moved by `at`. Its bytes follow all earlier ones in the packed form.
  void append(ptrdiff_t at, const Layout& next);
  // The layout of the whole sequence.
  Layout finish() &&;

 private:
  friend class Layout;
  static constexpr size_t none = ~size_t{0};

  struct Piece {
    size_t begin = 0;    // packed bytes before it
    ptrdiff_t at = 0;    // its whole offset: the loop's own at_ is 0
    size_t loop = none;  // index in loops_; none: a run up to the next piece's begin
  };
  void add(ptrdiff_t at, const Layout& loop);
  void splice(ptrdiff_t at, const List& list);
  void fold_runs();
  size_t index_of(const Layout& loop);

  std::vector<Piece> pieces_;  // a finished list ends with a sentinel
  std::vector<Layout> loops_;  // equal pieces near each other share one
  size_t bytes_ = 0;
};

}  // namespace sluice
