// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mpi/narrow.h"

#include <bit>
#include <cstdlib>

#include "tests/mpi/harness.h"

namespace test {

uint16_t NarrowFormat::encode(int number) const {
  if (number == 0) return 0;
  const auto magnitude = static_cast<unsigned>(std::abs(number));
  const int exponent = static_cast<int>(std::bit_width(magnitude)) - 1,
            shift = fraction_bits - exponent;
  const unsigned significand = shift >= 0 ? magnitude << shift : magnitude >> -shift;
  const unsigned fraction = significand & ((1u << fraction_bits) - 1);
  const unsigned sign = number < 0 ? 0x8000 : 0;
  return static_cast<uint16_t>(sign | static_cast<unsigned>(exponent + bias) << fraction_bits |
                               fraction);
}

int NarrowFormat::decode(uint16_t bits) const {
  if ((bits & 0x7fff) == 0) return 0;
  const int shift = fraction_bits - ((bits & 0x7fff) >> fraction_bits) + bias;
  const int significand = 1 << fraction_bits | (bits & ((1 << fraction_bits) - 1));
  const int magnitude = shift >= 0 ? significand >> shift : significand << -shift;
  return bits & 0x8000 ? -magnitude : magnitude;
}

std::vector<NarrowFormat> narrow_formats() {
  using Make = int(MPI_Datatype*);
  std::vector<NarrowFormat> formats = {{"sluice_type_float16", 10, 15},
                                       {"sluice_type_bfloat16", 7, 127}};
  for (NarrowFormat& format : formats) {
    auto* const make = reinterpret_cast<Make*>(dlsym(RTLD_DEFAULT, format.name));
    if (make && make(&format.type)) fail(std::string(format.name) + " fails");
  }
  return formats;
}

}  // namespace test
