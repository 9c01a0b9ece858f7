// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/shared.h"

namespace sluice {
namespace {

// Compares all bytes: it takes the same time wherever the two differ.
bool are_equal(const Key& one, const Key& other) {
  std::byte different{0};
  for (size_t i = 0; i < one.size(); ++i) different |= one[i] ^ other[i];
  return different == std::byte{0};
}

}  // namespace

TcpShared::Sign TcpShared::sign_of(const Greeting& greeting) const {
  if (greeting.to != options.self) return Sign::none;
  if (are_equal(greeting.key, key)) return Sign::key;
  if (!options.filter) return Sign::none;
  const auto proof = options.filter->prove(key, greeting.from, greeting.to);
  return proof.ok() && are_equal(greeting.key, *proof) ? Sign::proof : Sign::none;
}

}  // namespace sluice
