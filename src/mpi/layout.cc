// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/layout.h"

#include <algorithm>
#include <cstring>

#include "src/base/copy.h"

namespace sluice {

Layout Layout::run(size_t bytes) {
  Layout layout;
  if (bytes == 0) return layout;
  layout.loops_.push_back({0, 0, 1, 0, bytes, nullptr});
  layout.bytes_ = bytes;
  return layout;
}

Layout Layout::repeated(size_t n, ptrdiff_t stride) const {
  if (n == 1 || bytes_ == 0) return *this;
  Layout layout;
  if (n == 0) return layout;
  layout.bytes_ = n * bytes_;
  Loop loop = loops_[0];
  if (loops_.size() > 1) {
    loop = {0, 0, n, stride, bytes_, std::make_shared<const Layout>(*this)};
  } else if (loop.count > 1 && stride == static_cast<ptrdiff_t>(loop.count) * loop.stride) {
    loop.count *= n;
  } else if (loop.count > 1) {
    loop = {0, 0, n, stride, bytes_, std::make_shared<const Layout>(*this)};
  } else if (!loop.inner && stride == static_cast<ptrdiff_t>(loop.bytes)) {
    loop.bytes *= n;
  } else {
    loop.count = n;
    loop.stride = stride;
  }
  layout.loops_.push_back(std::move(loop));
  return layout;
}

void Layout::append(ptrdiff_t at, const Layout& next) {
  if (next.bytes_ == 0) return;
  Loop loop{0, 0, 1, 0, next.bytes_, nullptr};
  if (next.loops_.size() == 1) {
    loop = next.loops_[0];
  } else {
    loop.inner = std::make_shared<const Layout>(next);
  }
  loop.begin = bytes_;
  loop.at += at;
  bytes_ += next.bytes_;
  if (!loops_.empty() && is_single_run(loop) && is_single_run(loops_.back()) &&
      loops_.back().at + static_cast<ptrdiff_t>(loops_.back().bytes) == loop.at) {
    loops_.back().bytes += loop.bytes;
  } else {
    loops_.push_back(std::move(loop));
  }
}

// Copies in one direction.
class Layout::Mover {
 public:
  explicit Mover(bool packing) : packing_(packing) {}

  // Bytes [begin, end) of turns of so many bytes each, which are `stride` apart from `user` on.
  void turns(const Layout* inner, size_t bytes, ptrdiff_t stride, std::byte* user, size_t begin,
             size_t end, std::byte* dense) const {
    for (size_t size; begin < end; begin += size, dense += size) {
      const size_t from = begin % bytes;
      std::byte* const place = offset_by(user, static_cast<ptrdiff_t>(begin / bytes) * stride);
      size = std::min(bytes - from, end - begin);
      if (inner) {
        element(*inner, place, from, from + size, dense);
      } else if (size == bytes) {
        const size_t whole = (end - begin) / bytes;
        size = whole * bytes;
        runs(place, stride, whole, bytes, dense);
      } else {
        copy(offset_by(place, static_cast<ptrdiff_t>(from)), dense, size);
      }
    }
  }

  // Bytes [begin, end) of one element.
  void element(const Layout& layout, std::byte* user, size_t begin, size_t end,
               std::byte* dense) const {
    const auto& loops = layout.loops_;
    const auto before = [](size_t at, const Loop& loop) { return at < loop.begin; };
    auto loop = begin == 0 ? loops.begin()
                           : std::upper_bound(loops.begin(), loops.end(), begin, before) - 1;
    for (; loop != loops.end() && loop->begin < end; ++loop) {
      const size_t from = begin - loop->begin;
      const size_t to = std::min(end - loop->begin, loop->count * loop->bytes);
      std::byte* const place = offset_by(user, loop->at);
      if (is_single_run(*loop)) {
        copy(offset_by(place, static_cast<ptrdiff_t>(from)), dense, to - from);
      } else {
        turns(loop->inner.get(), loop->bytes, loop->stride, place, from, to, dense);
      }
      dense += to - from;
      begin += to - from;
    }
  }

 private:
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

void Layout::pack(const void* user, ptrdiff_t extent, size_t begin, size_t size,
                  std::byte* dense) const {
  move(Mover(true), offset_by(user, 0), extent, begin, size, dense);
}

void Layout::unpack(void* user, ptrdiff_t extent, size_t begin, size_t size,
                    const std::byte* dense) const {
  move(Mover(false), static_cast<std::byte*>(user), extent, begin, size,
       const_cast<std::byte*>(dense));
}

void Layout::move(const Mover& mover, std::byte* user, ptrdiff_t extent, size_t begin, size_t size,
                  std::byte* dense) const {
  if (size == 0) return;
  if (loops_.size() > 1 || loops_[0].count > 1) {
    mover.turns(this, bytes_, extent, user, begin, begin + size, dense);
  } else {  // one loop less
    const Loop& loop = loops_[0];
    mover.turns(loop.inner.get(), loop.bytes, extent, offset_by(user, loop.at), begin, begin + size,
                dense);
  }
}

}  // namespace sluice
