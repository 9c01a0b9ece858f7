// SPDX-License-Identifier: BSD-3-Clause
//
// MPI's predefined datatypes as numbers: how values are written into them, and which of their bytes
// count.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tests/mpi/harness.h"

namespace test {

// Bytes of a long double that hold its value: the x87's.
constexpr size_t long_double_bytes = 10;

enum class Values { integer, unsigned_integer, floating, complex, logical, bytes, pair };

struct Operation {
  MPI_Op handle;
  const char* name;
};

struct Number {
  MPI_Datatype handle;
  std::string name;
  Values values;
  size_t extent;
  // Pairs: the value's kind and size, and where the index is.
  Values first = Values::integer;
  size_t first_size = 0;
  size_t index_at = 0;
  Values second = Values::integer;
  size_t second_size = 0;
  bool has_logic = true;  // logical operations are defined on it

  // One element of values that stay exact under the operation on up to 8 ranks, whatever the order.
  void draw(MPI_Op op, std::byte* at, int rank, Random& random) const;
  // Zeroes the bytes of long doubles that hold no value.
  void clear_padding(std::byte* at) const;
  // Where the bytes of an element lie that are no member's, and so the program's own: begin, end.
  std::vector<std::pair<size_t, size_t>> gaps() const;
};

// All that this MPI has.
std::vector<Number> all_numbers();
// All operations that MPI defines on it.
std::vector<Operation> operations_on(const Number& number);

}  // namespace test
