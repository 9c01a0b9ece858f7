// SPDX-License-Identifier: BSD-3-Clause
#include "src/ipc/slab_offer.h"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

// Where members lie when packed. (Ranks of one team run the same version of the library, on
// processors of one byte order.)
constexpr size_t at_text = 1;                    // of a report
constexpr size_t at_offered = 0, at_handle = 8;  // of an offer, with a handle or a text

template <typename T>
void put(const T& value, size_t at, std::span<std::byte> bytes) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

template <typename T>
void get(T* value, size_t at, std::span<const std::byte> bytes) {
  std::memcpy(value, bytes.data() + at, sizeof(*value));
}

// To the end, which is a zero.
void put_text(const std::string& text, std::span<std::byte> bytes) {
  std::memcpy(bytes.data(), text.data(), std::min(text.size(), bytes.size() - 1));
}

std::string get_text(std::span<const std::byte> bytes) {
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  return {text, strnlen(text, bytes.size())};
}

void clear(std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{}); }

}  // namespace

void RankReport::pack(std::span<std::byte> to) const {
  clear(to.first(packed_size));
  put(static_cast<uint8_t>(is_well), 0, to);
  put_text(why, to.subspan(at_text, packed_size - at_text));
}

RankReport RankReport::unpack(std::span<const std::byte> from) {
  return {from[0] != std::byte{}, get_text(from.subspan(at_text, packed_size - at_text))};
}

void SlabOffer::pack(std::span<std::byte> to) const {
  clear(to.first(packed_size));
  put(slab, at_offered, to);
  if (slab != 0) return put(handle, at_handle, to);
  put_text(why, to.subspan(at_handle, packed_size - at_handle));
}

SlabOffer SlabOffer::unpack(std::span<const std::byte> from) {
  SlabOffer offer;
  get(&offer.slab, at_offered, from);
  if (offer.slab != 0) {
    get(&offer.handle, at_handle, from);
  } else {
    offer.why = get_text(from.subspan(at_handle, packed_size - at_handle));
  }
  return offer;
}

}  // namespace sluice
