// SPDX-License-Identifier: BSD-3-Clause
//
// The values that buffers are filled with, and the expected results.
//
// Each element's value depends on its source rank, its block (the destination, if a rank sends
// different data to different ranks), its index and the round. Values are so small that sums over
// all ranks are exact in the type. So a missing, doubled or swapped contribution is detected.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sluice::osu {

// A range of a buffer, in elements.
struct Piece {
  static constexpr int all = -1;
  size_t at;  // offset of its first element
  size_t count;
  int source;      // the contributing rank; all: the sum over ranks
  int block;       // which of the source's blocks
  size_t first;    // index in that block of the first element
  int summed = 0;  // all: over ranks 0 to so many - 1; 0: over all
};

// What values depend on besides their place.
struct Round {
  int ranks;
  uint32_t number;
};

struct ElementType {
  const char* option;  // as on the command line: "mpi_char"
  const char* name;    // "MPI_CHAR"
  MPI_Datatype handle;
  size_t bytes;
  void (*fill)(void* buffer, const Piece& piece, Round round);
  // Empty if the piece holds the expected values, else a sentence on the first wrong element.
  std::string (*check)(const void* buffer, const Piece& piece, Round round);
};

// The types that the benchmarks support. Call it after MPI_Init.
std::span<const ElementType> element_types();

// Sets all bits, a value that no contribution and no sum has, to detect memory that no call wrote.
void poison(void* buffer, size_t bytes);
bool is_poisoned(const void* buffer, size_t bytes);

}  // namespace sluice::osu
