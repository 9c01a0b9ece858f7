// SPDX-License-Identifier: BSD-3-Clause
//
// What ranks tell each other of their slabs (device_slabs.h) after a vote: what the others need to
// open one, and whether a rank is well in a phase of a call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sluice {

// Whether a rank is well, and why not.
struct RankReport {
  static constexpr size_t packed_size = 96, longest_text = 94;
  bool is_well = true;
  std::string why;  // cut where it is too long

  void pack(std::span<std::byte> bytes) const;
  static RankReport unpack(std::span<const std::byte> bytes);
};

// The slab of a rank, for the others to open. Without one, the reason.
struct SlabOffer {
  static constexpr size_t packed_size = 96;
  static constexpr size_t handle_size = 64;
  uint64_t slab = 0;  // as in its vote; 0: none
  std::array<char, handle_size> handle = {};
  std::string why;

  void pack(std::span<std::byte> bytes) const;
  static SlabOffer unpack(std::span<const std::byte> bytes);
};

}  // namespace sluice
