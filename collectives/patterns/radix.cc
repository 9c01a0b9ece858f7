// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/patterns/radix.h"

namespace sluice {

std::vector<uint32_t> factorize(Rank size, uint32_t radix) {
  std::vector<uint32_t> factors;
  while (radix > 1 && size > 1 && size % radix == 0) {
    factors.push_back(radix);
    size /= radix;
  }
  for (uint64_t prime = 2; prime * prime <= size; ++prime) {
    for (; size % prime == 0; size /= prime) factors.push_back(prime);
  }
  if (size > 1) factors.push_back(size);
  return factors;
}

std::vector<Digit> digits_of(Rank size, uint32_t radix) {
  std::vector<Digit> digits;
  Rank stride = 1;
  for (const uint32_t factor : factorize(size, radix)) {
    digits.push_back({factor, stride});
    stride *= factor;
  }
  return digits;
}

}  // namespace sluice
