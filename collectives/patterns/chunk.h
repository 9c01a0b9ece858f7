// SPDX-License-Identifier: BSD-3-Clause
//
// Chunks: a block cut into `of` parts, as equal as its elements allow. Used to divide a vector that
// has no blocks of its own among ranks.
#pragma once

#include "collectives/plan.h"

namespace sluice {

// Chunks [first, last) of `of`, of the whole of input or output. first < last <= of.
constexpr Piece chunks(Area area, uint32_t first, uint32_t last, uint32_t of) {
  return {area, whole, {first, last, of}};
}

constexpr Piece chunk(Area area, uint32_t index, uint32_t of) {
  return chunks(area, index, index + 1, of);
}

// Chunks [first, last) of `of` of a piece of input or output.
constexpr Piece chunks(const Piece& piece, uint32_t first, uint32_t last, uint32_t of) {
  const auto [begin, end, parts] = piece.part;
  const uint32_t width = end - begin;
  return {
      piece.area, piece.block, {begin * of + first * width, begin * of + last * width, parts * of}};
}

constexpr Piece chunk(const Piece& piece, uint32_t index, uint32_t of) {
  return chunks(piece, index, index + 1, of);
}

// The whole of input or output, uncut.
inline constexpr Piece all_input{Area::input, whole, {}};
inline constexpr Piece all_output{Area::output, whole, {}};

}  // namespace sluice
