// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/layout.h"

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
  const auto is_alike = [&](const Layout& known) {
    return known.count_ == loop.count_ && known.stride_ == loop.stride_ &&
           known.bytes_ == loop.bytes_ && known.list_ == loop.list_;
  };
  const size_t last = loops_.size() - std::min<size_t>(loops_.size(), 8);
  piece.loop = static_cast<size_t>(
      std::find_if(loops_.begin() + static_cast<ptrdiff_t>(last), loops_.end(), is_alike) -
      loops_.begin());
  if (piece.loop == loops_.size()) {
    loops_.push_back(loop.moved(-loop.at_));
  }
  pieces_.push_back(piece);
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
  const Piece first = pieces_[0];
  if (pieces_.size() == 1) {
    return (first.loop == none ? run(bytes_) : loops_[first.loop]).moved(first.at);
  }
  pieces_.push_back({bytes_, 0, none});
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
  explicit CopierCopies(Layout::Copier& copier) : copier_(copier) {}

  void copy(std::byte* user, std::byte* dense, size_t bytes) const {
    copier_.copy(user, dense, bytes);
  }
  void runs(std::byte* user, ptrdiff_t stride, size_t n, size_t bytes, std::byte* dense) const {
    n == 1 ? copier_.copy(user, dense, bytes) : copier_.runs(user, stride, n, bytes, dense);
  }

 private:
  Layout::Copier& copier_;
};

}  // namespace

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
      if (list) {
        pieces(*list, place, from, from + size, dense);
      } else if (size == bytes) {
        const size_t whole = (end - begin) / bytes;
        size = whole * bytes;
        copies_.runs(place, stride, whole, bytes, dense);
      } else {
        copies_.copy(offset_by(place, static_cast<ptrdiff_t>(from)), dense, size);
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
    const size_t from = begin % whole;
    some = std::min(whole - from, size);
    mover.turns(list_.get(), bytes_, stride_,
                offset_by(user, static_cast<ptrdiff_t>(begin / whole) * extent), from, from + some,
                dense);
  }
}

}  // namespace sluice
