// SPDX-License-Identifier: BSD-3-Clause
//
// What buffers are filled with, and what must have come of it.
//
// Every element is a number that depends on the rank it comes from, the block (the destination,
// where ranks send different things to different ranks), its index and the round. Numbers are small
// enough that sums over all ranks are exact in the type, so that one missing, doubled or swapped
// contribution shows.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sluice::osu {

// A stretch of a buffer, in elements.
struct Piece {
  static constexpr int all = -1;
  size_t at;  // where it begins
  size_t count;
  int source;    // the rank whose contribution it is; all: the sum over ranks
  int block;     // which of the source's blocks
  size_t first;  // index in that block of the first element
};

// What numbers depend on besides their place.
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
  // Empty if the piece holds what it must, else a sentence on the first wrong element.
  std::string (*check)(const void* buffer, const Piece& piece, Round round);
};

// The types that benchmarks know. Not before MPI_Init.
std::span<const ElementType> element_types();

// Memory that no call wrote to: all bits set, which no contribution and no sum is.
void poison(void* buffer, size_t bytes);
bool is_poisoned(const void* buffer, size_t bytes);

}  // namespace sluice::osu
