// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mpi/rounding.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace test {
namespace {

size_t parts_of(const Number& number) { return number.values == Values::complex ? 2 : 1; }

size_t part_bytes(const Number& number) { return number.extent / parts_of(number); }

long double epsilon_of(const Number& number) {
  switch (part_bytes(number)) {
    case sizeof(float):
      return FLT_EPSILON;
    case sizeof(double):
      return DBL_EPSILON;
    default:
      return LDBL_EPSILON;
  }
}

long double load(const std::byte* at, size_t bytes) {
  float single = 0;
  double twice = 0;
  long double extended = 0;
  switch (bytes) {
    case sizeof single:
      std::memcpy(&single, at, bytes);
      return single;
    case sizeof twice:
      std::memcpy(&twice, at, bytes);
      return twice;
    default:
      std::memcpy(&extended, at, bytes);
      return extended;
  }
}

void store(std::byte* at, size_t bytes, long double value) {
  const auto single = static_cast<float>(value);
  const auto twice = static_cast<double>(value);
  switch (bytes) {
    case sizeof single:
      std::memcpy(at, &single, bytes);
      return;
    case sizeof twice:
      std::memcpy(at, &twice, bytes);
      return;
    default:
      std::memcpy(at, &value, long_double_bytes);
  }
}

// 1 to 2 with a random sign, times a power of two unless it is an operand of a product.
long double draw_part(MPI_Op op, Random& random) {
  const auto fraction = static_cast<long double>(random.next() >> 11) / (1ull << 53);
  const long double value = random.chance(2) ? 1 + fraction : -1 - fraction;
  if (op == MPI_PROD) return value;
  if (random.chance(50)) return 0;
  if (op == MPI_SUM && random.chance(200)) {
    return random.chance(2) ? std::numeric_limits<long double>::infinity()
                            : std::numeric_limits<long double>::quiet_NaN();
  }
  return std::ldexp(value, static_cast<int>(random.below(40)) - 20);
}

// Whether MPI's own MPI_MAX treats the type's sign correctly. Open MPI 4.1.4 treats offsets as
// unsigned, and unsigned long as signed.
bool is_sign_known(const Number& number) {
  uint64_t top = uint64_t{1} << (8 * number.extent - 1), one = 1;
  IN_MPI(MPI_Reduce_local)(&top, &one, 1, number.handle, MPI_MAX);
  const bool top_won = one != 1;
  return top_won == (number.values == Values::unsigned_integer) && number.handle != MPI_OFFSET;
}

void draw_value(const Number& number, MPI_Op op, std::byte* at, Random& random) {
  if (is_rounded(number)) {
    const size_t bytes = part_bytes(number);
    for (size_t i = 0; i < parts_of(number); ++i) {
      store(at + i * bytes, bytes, draw_part(op, random));
    }
    return;
  }
  if (number.values == Values::pair || number.values == Values::logical) {
    return number.draw(op, at, 0, random);
  }
  const uint64_t any = random.next();
  std::memcpy(at, &any, number.extent);
  const bool compares = op == MPI_MIN || op == MPI_MAX;
  if (compares && !is_sign_known(number)) at[number.extent - 1] &= std::byte{0x7f};
  const bool logic = op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR;
  if (logic && random.chance(2)) std::memset(at, 0, number.extent);
}

std::string describe(long double ours, long double theirs, long double bound) {
  char text[160];
  std::snprintf(text, sizeof text, "%.21Lg, where MPI has %.21Lg; %.3Lg apart, not at most %.3Lg",
                ours, theirs, std::fabs(ours - theirs), bound);
  return text;
}

std::string compare(long double ours, long double theirs, long double bound) {
  if (std::isnan(ours) && std::isnan(theirs)) return "";
  if (ours == theirs || std::fabs(ours - theirs) <= bound) return "";
  return describe(ours, theirs, bound);
}

}  // namespace

std::vector<Segment> value_bytes(const Number& number) {
  const auto bytes = [](Values values, size_t size) {
    return values == Values::floating && size == sizeof(long double) ? long_double_bytes : size;
  };
  if (number.values == Values::pair) {
    return {{0, bytes(number.first, number.first_size)},
            {static_cast<ptrdiff_t>(number.index_at), bytes(number.second, number.second_size)}};
  }
  if (number.values != Values::complex) return {{0, bytes(number.values, number.extent)}};
  const size_t half = number.extent / 2;
  return {{0, bytes(Values::floating, half)},
          {static_cast<ptrdiff_t>(half), bytes(Values::floating, half)}};
}

bool is_rounded(const Number& number) {
  return number.values == Values::floating || number.values == Values::complex;
}

void draw_values(const Number& number, MPI_Op op, Memory* memory, size_t n, Random& random) {
  for (size_t i = 0; i < n; ++i) draw_value(number, op, memory->element(0, i), random);
}

std::vector<long double> sums_of_magnitudes(const Number& number, MPI_Op op, Memory* input,
                                            size_t n, decltype(&MPI_Allreduce) reduce,
                                            MPI_Comm comm) {
  if (op != MPI_SUM) return {};
  const size_t parts = parts_of(number), bytes = part_bytes(number);
  std::vector<long double> mine, sums(n * parts);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < parts; ++k) {
      mine.push_back(std::fabs(load(input->element(0, i) + k * bytes, bytes)));
    }
  }
  reduce(mine.data(), sums.data(), static_cast<int>(sums.size()), MPI_LONG_DOUBLE, MPI_SUM, comm);
  return sums;
}

std::string difference_beyond_rounding(const Number& number, MPI_Op op, int ranks,
                                       const std::vector<long double>& sums, size_t index,
                                       const std::byte* ours, const std::byte* theirs) {
  const size_t parts = parts_of(number), bytes = part_bytes(number);
  const long double steps = 1.01L * epsilon_of(number) * static_cast<long double>(ranks - 1);
  if (op == MPI_PROD && parts == 2) {
    const auto length = [&](const std::byte* at) {
      return std::hypot(load(at, bytes), load(at + bytes, bytes));
    };
    const long double apart = std::hypot(load(ours, bytes) - load(theirs, bytes),
                                         load(ours + bytes, bytes) - load(theirs + bytes, bytes));
    const long double bound = steps * std::sqrt(5.0L) * length(theirs);
    return apart <= bound ? "" : describe(apart, 0, bound);
  }
  for (size_t k = 0; k < parts; ++k) {
    const long double mine = load(ours + k * bytes, bytes), other = load(theirs + k * bytes, bytes);
    long double bound = 0;
    if (op == MPI_SUM) bound = steps * sums[index * parts + k];
    if (op == MPI_PROD) bound = steps * std::fabs(other);
    std::string difference = compare(mine, other, bound);
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace test
