// SPDX-License-Identifier: BSD-3-Clause
#include "src/memory/staging.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <utility>

namespace sluice {
namespace {

constexpr size_t alignment = 64;
constexpr size_t kept = 256 << 10;  // bytes a communicator keeps; programs make thousands

// Larger staging memory, shared by the process's communicators between their calls. The kernel
// would have to zero new memory page by page, which takes longer than the call.
class Spares {
 public:
  // Memory of at least so many bytes, and its size; nullptr if there is none.
  std::pair<std::byte*, size_t> acquire(size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (auto& spare : spares_) {
      if (spare.second >= bytes) return std::exchange(spare, {});
    }
    return {};
  }
  // Keeps memory. Returns what the caller must free: nullptr, the same memory, or smaller memory
  // that it replaces.
  std::byte* give(std::byte* data, size_t bytes) {
    if (bytes > largest) return data;
    const std::lock_guard lock(mutex_);
    auto& least =
        *std::ranges::min_element(spares_, {}, [](const auto& each) { return each.second; });
    if (least.second >= bytes) return data;
    return std::exchange(least, {data, bytes}).first;
  }

 private:
  static constexpr size_t largest = size_t{16} << 20;

  std::mutex mutex_;
  std::array<std::pair<std::byte*, size_t>, 2> spares_{};  // one for each side of a call
};
constinit Spares spares;

}  // namespace

void Staging::Free::operator()(std::byte* data) const {
  ::operator delete(data, std::align_val_t(alignment));
}

std::byte* Staging::reserve(size_t bytes, const DevicePlace& place) {
  if (place.is_host()) return reserve(bytes);
  unpin();
  pinned_ = reserve_pinned(place, bytes);
  return pinned_ ? pinned_ : reserve(bytes);
}

std::byte* Staging::reserve(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  if (bytes <= bytes_) return data_.get();
  data_.reset();
  bytes_ = 0;
  if (bytes > kept) {
    const auto [spare, size] = spares.acquire(bytes);
    data_.reset(spare);
    bytes_ = size;
    if (spare) return spare;
  }
  void* data = ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
  if (!data) return nullptr;
  data_.reset(static_cast<std::byte*>(data));
  bytes_ = bytes;
  return data_.get();
}

void Staging::trim() {
  if (bytes_ <= kept) return;
  data_.reset(spares.give(data_.release(), std::exchange(bytes_, 0)));
  data_.reset();
}

}  // namespace sluice
