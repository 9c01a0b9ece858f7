// SPDX-License-Identifier: BSD-3-Clause
//
// narrow_floats: sums, products, minima and maxima of Sluice's 16-bit floating-point types, with
// every reducing function; also on an intercommunicator, which Sluice leaves to MPI.
#include <algorithm>
#include <cstdint>

#include "tests/mpi/harness.h"
#include "tests/mpi/narrow.h"

namespace {

using Format = test::NarrowFormat;

// Checks that the type has two bytes, and that each lookup returns the same type.
Format find(size_t which) {
  const Format format = test::narrow_formats()[which];
  test::check(format.type != MPI_DATATYPE_NULL, std::string(format.name) + " is there");
  test::check(test::narrow_formats()[which].type == format.type,
              std::string(format.name) + " gives one type");
  int size = 0;
  MPI_Type_size(format.type, &size);
  test::check(size == 2, "the type's size");
  return format;
}

struct Operation {
  MPI_Op op;
  int (*apply)(int, int);
};
const Operation* operations() {
  static const Operation all[] = {{MPI_SUM, [](int a, int b) { return a + b; }},
                                  {MPI_PROD, [](int a, int b) { return a * b; }},
                                  {MPI_MIN, [](int a, int b) { return std::min(a, b); }},
                                  {MPI_MAX, [](int a, int b) { return std::max(a, b); }}};
  return all;
}

int operand(int rank, size_t i) { return (rank + static_cast<int>(i)) % 2 + 1; }

// Of so many ranks, from the first on.
int result(const Operation& operation, int first, int ranks, size_t i) {
  int value = operand(first, i);
  for (int rank = first + 1; rank < first + ranks; ++rank) {
    value = operation.apply(value, operand(rank, i));
  }
  return value;
}

constexpr int each = 1001;

void check(const Format& format, const Operation& operation, int rank, int ranks) {
  const auto all = static_cast<size_t>(each * ranks);
  std::vector<uint16_t> from(all), to(all);
  for (size_t i = 0; i < all; ++i) from[i] = format.encode(operand(rank, i));
  const auto expect_of = [&](int operands, size_t first, size_t n, const char* what) {
    bool right = true;
    for (size_t i = 0; i < n; ++i) {
      right &= to[i] == format.encode(result(operation, 0, operands, first + i));
    }
    test::check(right, std::string(what) + " of " + format.name);
  };
  const auto expect = [&](size_t first, size_t n, const char* what) {
    expect_of(ranks, first, n, what);
  };
  MPI_Allreduce(from.data(), to.data(), each, format.type, operation.op, MPI_COMM_WORLD);
  expect(0, each, "allreduce");
  to.assign(all, 0);
  MPI_Reduce(from.data(), to.data(), each, format.type, operation.op, ranks - 1, MPI_COMM_WORLD);
  if (rank == ranks - 1) expect(0, each, "reduce");
  MPI_Scan(from.data(), to.data(), each, format.type, operation.op, MPI_COMM_WORLD);
  expect_of(rank + 1, 0, each, "scan");
  MPI_Exscan(from.data(), to.data(), each, format.type, operation.op, MPI_COMM_WORLD);
  expect_of(std::max(rank, 1), 0, each, "exscan");  // rank 0's scan is left alone
  MPI_Reduce_scatter_block(from.data(), to.data(), each, format.type, operation.op, MPI_COMM_WORLD);
  expect(static_cast<size_t>(each * rank), each, "reduce_scatter_block");
  const std::vector<int> counts(static_cast<size_t>(ranks), each);
  MPI_Reduce_scatter(from.data(), to.data(), counts.data(), format.type, operation.op,
                     MPI_COMM_WORLD);
  expect(static_cast<size_t>(each * rank), each, "reduce_scatter");
}

// Each half of the ranks gets the other half's result.
void check_between(const Format& format, const Operation& operation, int rank, int ranks) {
  const int half = ranks / 2;
  const bool low = rank < half;
  MPI_Comm own, between;
  MPI_Comm_split(MPI_COMM_WORLD, low, rank, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, low ? half : 0, 1, &between);
  uint16_t from = format.encode(operand(rank, 0)), to = 0;
  MPI_Allreduce(&from, &to, 1, format.type, operation.op, between);
  const int value = low ? result(operation, half, ranks - half, 0) : result(operation, 0, half, 0);
  test::check(to == format.encode(value), std::string("between groups, ") + format.name);
  MPI_Comm_free(&between);
  MPI_Comm_free(&own);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  for (const Format& format : {find(0), find(1)}) {
    for (int i = 0; i < 4; ++i) {
      check(format, operations()[i], test::rank, test::size);
      if (test::size > 1) check_between(format, operations()[i], test::rank, test::size);
    }
  }
  return test::finish("narrow_floats");
}
