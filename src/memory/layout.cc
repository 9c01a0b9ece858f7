// SPDX-License-Identifier: BSD-3-Clause
#include "src/memory/layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/copy.h"

namespace sluice {

Layout Layout::run(size_t bytes) {
  Layout layout;
  layout.bytes_ = bytes;
  return layout;
}

Layout Layout::repeated(size_t n, ptrdiff_t stride) const {
  if (n == 1) return *this;
  if (n == 0 || bytes_ == 0) return {};
  Layout layout = *this;
  if (count_ == 1 && !list_ && stride == static_cast<ptrdiff_t>(bytes_)) {
    layout.bytes_ *= n;
  } else if (count_ == 1 || stride == static_cast<ptrdiff_t>(count_) * stride_) {
    layout.count_ *= n;
    if (count_ == 1) layout.stride_ = stride;
  } else {
    auto list = std::make_shared<List>();
    list->append(0, *this);
    list->pieces_.push_back({list->bytes_, 0, List::none});
    layout.at_ = 0;
    layout.count_ = n;
    layout.stride_ = stride;
    layout.bytes_ = list->bytes_;
    layout.list_ = std::move(list);
  }
  return layout;
}

Layout Layout::moved(ptrdiff_t at) const {
  Layout layout = *this;
  layout.at_ += at;
  return layout;
}

ptrdiff_t Layout::start() const {
  const Layout* layout = this;
  ptrdiff_t at = at_;
  while (layout->list_) {
    const List::Piece& first = layout->list_->pieces_[0];
    at += first.at;
    if (first.loop == List::none) break;
    layout = &layout->list_->loops_[first.loop];
  }
  return bytes_ == 0 ? 0 : at;
}

// A list with more bytes than all before it is spliced in and does not become a level of its own.
// This bounds the number of levels.
void Layout::List::append(ptrdiff_t at, const Layout& next) {
  if (next.bytes_ == 0) return;
  at += next.at_;
  if (next.count_ == 1 && next.list_ && next.bytes_ > bytes_) return splice(at, *next.list_);
  add(at, next);
}

void Layout::List::add(ptrdiff_t at, const Layout& loop) {
  Piece piece{bytes_, at, none};
  bytes_ += loop.bytes();
  if (loop.is_run()) {
    const bool adjoins =
        !pieces_.empty() && pieces_.back().loop == none &&
        pieces_.back().at + static_cast<ptrdiff_t>(piece.begin - pieces_.back().begin) == at;
    if (!adjoins) pieces_.push_back(piece);
    return;
  }
  piece.loop = index_of(loop);
  pieces_.push_back(piece);
}

size_t Layout::List::index_of(const Layout& loop) {
  const auto is_alike = [&](const Layout& known) {
    return known.count_ == loop.count_ && known.stride_ == loop.stride_ &&
           known.bytes_ == loop.bytes_ && known.list_ == loop.list_;
  };
  const size_t last = loops_.size() - std::min<size_t>(loops_.size(), 8);
  const auto known =
      std::find_if(loops_.begin() + static_cast<ptrdiff_t>(last), loops_.end(), is_alike);
  const auto index = static_cast<size_t>(known - loops_.begin());
  if (known == loops_.end()) loops_.push_back(loop.moved(-loop.at_));
  return index;
}

// Makes a loop of four or more runs of one length that lie at equal distances: an indexed type may
// be a vector. The list must have its sentinel.
void Layout::List::fold_runs() {
  constexpr size_t least = 4;
  const auto length = [&](size_t i) { return pieces_[i + 1].begin - pieces_[i].begin; };
  const size_t count = pieces_.size() - 1;
  size_t kept = 0;
  for (size_t i = 0, next; i < count; i = next) {
    Piece piece = pieces_[i];
    const ptrdiff_t stride = pieces_[i + 1].at - piece.at;
    next = i + 1;
    while (piece.loop == none && next < count && pieces_[next].loop == none &&
           length(next) == length(i) && pieces_[next].at - pieces_[next - 1].at == stride) {
      ++next;
    }
    if (next - i < least) {
      next = i + 1;
    } else {
      piece.loop = index_of(run(length(i)).repeated(next - i, stride));
    }
    pieces_[kept++] = piece;
  }
  pieces_[kept++] = pieces_[count];
  pieces_.resize(kept);
}

void Layout::List::splice(ptrdiff_t at, const List& list) {
  for (size_t i = 0; i + 1 < list.pieces_.size(); ++i) {
    const Piece& piece = list.pieces_[i];
    add(at + piece.at, piece.loop == none ? run(list.pieces_[i + 1].begin - piece.begin)
                                          : list.loops_[piece.loop]);
  }
}

Layout Layout::List::finish() && {
  if (pieces_.empty()) return {};
  pieces_.push_back({bytes_, 0, none});
  fold_runs();
  const Piece first = pieces_[0];
  if (pieces_.size() == 2) {
    return (first.loop == none ? run(bytes_) : loops_[first.loop]).moved(first.at);
  }
  pieces_.shrink_to_fit();
  loops_.shrink_to_fit();
  Layout layout = run(bytes_);
  layout.list_ = std::make_shared<const List>(std::move(*this));
  return layout;
}

namespace {

// Copies of the processor.
class HostCopies {
 public:
  static constexpr bool in_rows = false;

  explicit HostCopies(bool packing) : packing_(packing) {}

  void copy(std::byte* user, std::byte* dense, size_t bytes) const {
    if (packing_) {
      copy_bytes(dense, user, bytes);
    } else {
      copy_bytes(user, dense, bytes);
    }
  }

  void runs(std::byte* user, ptrdiff_t stride, size_t n, size_t bytes, std::byte* dense) const {
    switch (bytes) {
      case 1:
        return runs_of<1>(user, stride, n, dense);
      case 2:
        return runs_of<2>(user, stride, n, dense);
      case 4:
        return runs_of<4>(user, stride, n, dense);
      case 8:
        return runs_of<8>(user, stride, n, dense);
      case 12:
        return runs_of<12>(user, stride, n, dense);
      case 16:
        return runs_of<16>(user, stride, n, dense);
      case 24:
        return runs_of<24>(user, stride, n, dense);
      case 32:
        return runs_of<32>(user, stride, n, dense);
      default:
        for (; n > 0; --n, user = offset_by(user, stride), dense += bytes) {
          copy(user, dense, bytes);
        }
    }
  }

 private:
  template <size_t bytes>
  void runs_of(std::byte* user, ptrdiff_t stride, size_t n, std::byte* dense) const {
    if (packing_) {
      for (; n > 0; --n, user = offset_by(user, stride), dense += bytes) {
        std::memcpy(dense, user, bytes);
      }
    } else {
      for (; n > 0; --n, user = offset_by(user, stride), dense += bytes) {
        std::memcpy(user, dense, bytes);
      }
    }
  }

  bool packing_;
};

class CopierCopies {
 public:
  static constexpr bool in_rows = true;

  explicit CopierCopies(Layout::Copier& copier) : copier_(copier) {}

  void copy(std::byte* user, std::byte* dense, size_t bytes) const {
    copier_.copy(user, dense, bytes);
  }
  void runs(std::byte* user, ptrdiff_t stride, size_t n, size_t bytes, std::byte* dense) const {
    rows(user, stride, n, bytes, dense, bytes);
  }
  void rows(std::byte* user, ptrdiff_t stride, size_t n, size_t bytes, std::byte* dense,
            size_t dense_stride) const {
    n == 1 ? copier_.copy(user, dense, bytes)
           : copier_.runs(user, stride, n, bytes, dense, dense_stride);
  }

 private:
  Layout::Copier& copier_;
};

}  // namespace

// Iterations, and how far they lie apart in memory and in the packed form.
struct Turns {
  size_t count;
  ptrdiff_t stride;
  size_t dense_stride;
};

// Finds the runs and has them copied.
template <typename Copies>
class Layout::Mover {
 public:
  explicit Mover(const Copies& copies) : copies_(copies) {}

  // Bytes [begin, end) of a loop whose iterations have `bytes` bytes each and lie `stride` apart
  // from `user` on.
  void turns(const List* list, size_t bytes, ptrdiff_t stride, std::byte* user, size_t begin,
             size_t end, std::byte* dense) const {
    for (size_t size; begin < end; begin += size, dense += size) {
      const size_t from = begin % bytes;
      std::byte* const place = offset_by(user, static_cast<ptrdiff_t>(begin / bytes) * stride);
      size = std::min(bytes - from, end - begin);
      const size_t whole = from == 0 ? (end - begin) / bytes : 0;
      if (Copies::in_rows && list && whole > 1) {
        size = whole * bytes;
        rows(list, bytes, {whole, stride, bytes}, place, dense);
      } else if (list) {
        pieces(*list, place, from, from + size, dense);
      } else if (size == bytes) {
        size = whole * bytes;
        copies_.runs(place, stride, whole, bytes, dense);
      } else {
        copies_.copy(offset_by(place, static_cast<ptrdiff_t>(from)), dense, size);
      }
    }
  }

  // Two loops, one around the other, of so many bytes each time. The copies' rows are those of one
  // loop, and there is a copy for each iteration of the other.
  void nest(const List* list, size_t bytes, Turns outer, Turns inner, std::byte* user,
            std::byte* dense) const {
    const auto copies = [](const Turns& rows, const Turns& each) {
      return rows.stride > 0 ? each.count : rows.count * each.count;
    };
    if (copies(inner, outer) < copies(outer, inner)) std::swap(outer, inner);
    for (size_t i = 0; i < inner.count; ++i) {
      rows(list, bytes, outer, offset_by(user, static_cast<ptrdiff_t>(i) * inner.stride),
           dense + i * inner.dense_stride);
    }
  }

  // The bytes of a list, or a run, in each of these iterations.
  void rows(const List* list, size_t bytes, const Turns& times, std::byte* user,
            std::byte* dense) const {
    if constexpr (Copies::in_rows) {
      if (!list) {
        copies_.rows(user, times.stride, times.count, bytes, dense, times.dense_stride);
        return;
      }
      for (auto piece = list->pieces_.begin(); piece + 1 != list->pieces_.end(); ++piece) {
        std::byte *const place = offset_by(user, piece->at), *const packed = dense + piece->begin;
        if (piece->loop == List::none) {
          rows(nullptr, piece[1].begin - piece->begin, times, place, packed);
        } else {
          const Layout& loop = list->loops_[piece->loop];
          nest(loop.list_.get(), loop.bytes_, times, {loop.count_, loop.stride_, loop.bytes_},
               place, packed);
        }
      }
    }
  }

  // Bytes [begin, end) of a list.
  void pieces(const List& list, std::byte* user, size_t begin, size_t end, std::byte* dense) const {
    const auto before = [](size_t at, const List::Piece& piece) { return at < piece.begin; };
    auto piece = list.pieces_.begin();
    if (begin > 0) piece = std::upper_bound(piece, list.pieces_.end(), begin, before) - 1;
    for (; begin < end; ++piece) {
      const size_t from = begin - piece->begin, to = std::min(end, piece[1].begin) - piece->begin;
      std::byte* const place = offset_by(user, piece->at);
      if (piece->loop == List::none) {
        copies_.copy(offset_by(place, static_cast<ptrdiff_t>(from)), dense, to - from);
      } else {
        const Layout& loop = list.loops_[piece->loop];
        turns(loop.list_.get(), loop.bytes_, loop.stride_, place, from, to, dense);
      }
      dense += to - from;
      begin += to - from;
    }
  }

 private:
  const Copies& copies_;
};

void Layout::pack(const void* user, ptrdiff_t extent, size_t begin, size_t size,
                  std::byte* dense) const {
  move_by(HostCopies(true), offset_by(user, 0), extent, begin, size, dense);
}

void Layout::unpack(void* user, ptrdiff_t extent, size_t begin, size_t size,
                    const std::byte* dense) const {
  move_by(HostCopies(false), static_cast<std::byte*>(user), extent, begin, size,
          const_cast<std::byte*>(dense));
}

void Layout::move(Copier& copier, const void* user, ptrdiff_t extent, size_t begin, size_t size,
                  std::byte* dense) const {
  move_by(CopierCopies(copier), offset_by(user, 0), extent, begin, size, dense);
}

template <typename Copies>
void Layout::move_by(const Copies& copies, std::byte* user, ptrdiff_t extent, size_t begin,
                     size_t size, std::byte* dense) const {
  if (size == 0) return;
  const Mover<Copies> mover(copies);
  user = offset_by(user, at_);
  if (count_ == 1) {  // the elements are the iterations
    return mover.turns(list_.get(), bytes_, extent, user, begin, begin + size, dense);
  }
  const size_t whole = bytes();
  for (size_t some; size > 0; begin += some, size -= some, dense += some) {
    const size_t from = begin % whole, elements = from == 0 ? size / whole : 0;
    std::byte* const place = offset_by(user, static_cast<ptrdiff_t>(begin / whole) * extent);
    if (Copies::in_rows && elements > 1) {
      some = elements * whole;
      mover.nest(list_.get(), bytes_, {elements, extent, whole}, {count_, stride_, bytes_}, place,
                 dense);
      continue;
    }
    some = std::min(whole - from, size);
    mover.turns(list_.get(), bytes_, stride_, place, from, from + some, dense);
  }
}

}  // namespace sluice
