// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/proofs.h"

#include <array>
#include <cstring>

namespace sluice {
namespace {

constexpr size_t label_bytes = 16;
constexpr size_t greeting_bytes = Greeting::most_bytes;

// answer: null for the first proof.
Result<Key> prove(const Prover& prover, const PairKey& key, const char (&label)[label_bytes],
                  const Greeting& asked, const Greeting* answer) {
  std::array<std::byte, label_bytes + 2 * greeting_bytes> text{};
  std::memcpy(text.data(), label, label_bytes);
  size_t size = label_bytes;
  for (const Greeting* each : {&asked, answer}) {
    if (each == nullptr) continue;
    Greeting without = *each;
    without.key = {};
    without.encode(text.data() + size);
    size += greeting_bytes;
  }
  return prover.prove(key, std::span(text).first(size));
}

}  // namespace

Result<Key> first_proof(const Prover& prover, const PairKey& key, const Greeting& asked) {
  return prove(prover, key, "sluice 4 first ", asked, nullptr);
}

Result<Key> second_proof(const Prover& prover, const PairKey& key, const Greeting& asked,
                         const Greeting& answer) {
  return prove(prover, key, "sluice 4 second", asked, &answer);
}

Result<Key> last_proof(const Prover& prover, const PairKey& key, const Greeting& asked,
                       const Greeting& answer) {
  return prove(prover, key, "sluice 4 last  ", asked, &answer);
}

bool are_equal(const Key& one, const Key& other) {
  std::byte different{0};
  for (size_t i = 0; i < one.size(); ++i) different |= one[i] ^ other[i];
  return different == std::byte{0};
}

}  // namespace sluice
