// SPDX-License-Identifier: BSD-3-Clause
//
// Sluice's 16-bit floating-point formats, for small integers only, which they hold exactly.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace test {

struct NarrowFormat {
  const char* name;  // of Sluice's function that returns the type
  int fraction_bits, bias;
  MPI_Datatype type = MPI_DATATYPE_NULL;

  uint16_t encode(int number) const;
  int decode(uint16_t bits) const;
};

// Both formats; types are set if Sluice is loaded. Needs MPI_Init.
std::vector<NarrowFormat> narrow_formats();

}  // namespace test
