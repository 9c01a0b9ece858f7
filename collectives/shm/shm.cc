// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/shm/shm.h"

namespace sluice {
namespace {

size_t most_in_a_round(RoundOf round, size_t bytes, bool ragged, Rank ranks) {
  const size_t block = ragged ? bytes : bytes / ranks;
  switch (round) {
    case RoundOf::all:
      return bytes;
    case RoundOf::block:
      return block;
    case RoundOf::blocks_of_others:
      return block * (ranks - 1);
    case RoundOf::group:
      return ragged ? bytes * ranks : bytes;
  }
  return bytes;
}

}  // namespace

bool needs_slots(const Algorithm& algorithm, size_t bytes, bool ragged, Rank ranks) {
  return algorithm.slots ||
         most_in_a_round(algorithm.round, bytes, ragged, ranks) > ArenaLine::inlined;
}

}  // namespace sluice
