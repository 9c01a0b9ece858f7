// SPDX-License-Identifier: BSD-3-Clause
//
// The 16-bit floating-point formats that Sluice offers, as far as small whole numbers go, which
// they hold exactly.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace test {

struct NarrowFormat {
  const char* name;  // of Sluice's function that gives the type
  int fraction_bits, bias;
  MPI_Datatype type = MPI_DATATYPE_NULL;

  uint16_t encode(int number) const;
  int decode(uint16_t bits) const;
};

// Both, with their types where Sluice is there. MPI is running.
std::vector<NarrowFormat> narrow_formats();

}  // namespace test
