// SPDX-License-Identifier: BSD-3-Clause
#include "osu/pattern.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace sluice::osu {
namespace {

// The type represents all integers up to this one exactly.
template <typename T>
constexpr uint32_t exact_limit = uint32_t{1} << std::min(std::numeric_limits<T>::digits, 31);
template <>
constexpr uint32_t exact_limit<signed char> = 127;
template <>
constexpr uint32_t exact_limit<int> = 0x7fffffff;

uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352d;
  x ^= x >> 15;
  x *= 0x846ca68b;
  return x ^ (x >> 16);
}

// The values of one piece: contribution(source, index) is in 0..exact_limit/ranks. If there are
// more ranks than exact_limit, only exact_limit ranks contribute (0 or 1); which ranks depends on
// the index.
template <typename T>
class Rule {
 public:
  Rule(const Piece& piece, Round round)
      : piece_(piece),
        ranks_(static_cast<uint32_t>(round.ranks)),
        limit_(std::max(exact_limit<T> / ranks_, 1u)),
        salt_(mix(round.number * 0x9e3779b9u + static_cast<uint32_t>(piece.block))) {}

  T operator()(size_t offset) const {
    uint32_t index = static_cast<uint32_t>(piece_.first + offset);
    if (piece_.source != Piece::all) return static_cast<T>(contribution(piece_.source, index));
    uint32_t sum = 0;
    const uint32_t summed = piece_.summed > 0 ? static_cast<uint32_t>(piece_.summed) : ranks_;
    for (uint32_t source = 0; source < summed; ++source) sum += contribution(source, index);
    return static_cast<T>(sum);
  }

 private:
  uint32_t contribution(uint32_t source, uint32_t index) const {
    if (ranks_ > exact_limit<T> && (source + index) % ranks_ >= exact_limit<T>) return 0;
    uint64_t number = mix(salt_ ^ (index * 0x85ebca6bu + source * 0xc2b2ae35u));
    return static_cast<uint32_t>((number * (uint64_t{limit_} + 1)) >> 32);
  }

  const Piece& piece_;
  uint32_t ranks_, limit_, salt_;
};

template <typename T>
void fill(void* buffer, const Piece& piece, Round round) {
  Rule<T> rule(piece, round);
  T* out = static_cast<T*>(buffer) + piece.at;
  for (size_t i = 0; i < piece.count; ++i) out[i] = rule(i);
}

template <typename T>
std::string check(const void* buffer, const Piece& piece, Round round) {
  Rule<T> rule(piece, round);
  const T* in = static_cast<const T*>(buffer) + piece.at;
  for (size_t i = 0; i < piece.count; ++i) {
    if (in[i] == rule(i)) continue;
    std::string origin = piece.source == Piece::all
                             ? "the sum over ranks"
                             : "what rank " + std::to_string(piece.source) + " sent";
    return "element " + std::to_string(piece.at + i) + " is " + std::to_string(in[i]) +
           ", not the " + std::to_string(rule(i)) + " that is " + origin;
  }
  return {};
}

template <typename T>
ElementType row(const char* option, const char* name, MPI_Datatype handle) {
  return {option, name, handle, sizeof(T), fill<T>, check<T>};
}

}  // namespace

std::span<const ElementType> element_types() {
  static const ElementType table[] = {
      row<signed char>("mpi_char", "MPI_CHAR", MPI_CHAR),
      row<int>("mpi_int", "MPI_INT", MPI_INT),
      row<float>("mpi_float", "MPI_FLOAT", MPI_FLOAT),
  };
  return table;
}

void poison(void* buffer, size_t bytes) { std::memset(buffer, 0xff, bytes); }

bool is_poisoned(const void* buffer, size_t bytes) {
  const unsigned char* begin = static_cast<const unsigned char*>(buffer);
  return std::all_of(begin, begin + bytes, [](unsigned char byte) { return byte == 0xff; });
}

}  // namespace sluice::osu
