// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/copy.h"

namespace sluice {
namespace {

using Vector [[gnu::vector_size(16)]] = unsigned char;

Vector load(const std::byte* from) {
  Vector value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

void store(std::byte* to, Vector value) { std::memcpy(to, &value, sizeof(value)); }

}  // namespace

void copy_by_vectors(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t line = 64, step = sizeof(Vector);
  const size_t rest = bytes % line;
  for (const std::byte* const end = from + (bytes - rest); from != end; from += line, to += line) {
    const Vector a = load(from), b = load(from + step);
    const Vector c = load(from + 2 * step), d = load(from + 3 * step);
    store(to, a);
    store(to + step, b);
    store(to + 2 * step, c);
    store(to + 3 * step, d);
  }
  std::memcpy(to, from, rest);
}

}  // namespace sluice
