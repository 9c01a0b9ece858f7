// SPDX-License-Identifier: BSD-3-Clause
//
// MPI's predefined datatypes as numbers: how to write values of them, and which bytes hold values.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tests/mpi/harness.h"

namespace test {

// Bytes of an x87 long double that hold its value.
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
  // Of pairs: kind and size of the value, and offset of the index.
  Values first = Values::integer;
  size_t first_size = 0;
  size_t index_at = 0;
  Values second = Values::integer;
  size_t second_size = 0;
  bool has_logic = true;  // logical operations are defined on it

  // Draws one element. Results are exact for up to 8 ranks, in any order of operations.
  void draw(MPI_Op op, std::byte* at, int rank, Random& random) const;
  // Zeroes the padding bytes of long doubles.
  void clear_padding(std::byte* at) const;
  // The gaps between an element's members, as (begin, end). They belong to the program.
  std::vector<std::pair<size_t, size_t>> gaps() const;
};

// The extent of a predefined type; 0 if this MPI does not have it, though it may know the handle.
size_t extent_of(MPI_Datatype type);
// All types that this MPI has.
std::vector<Number> all_numbers();
// All operations that MPI defines on this type.
std::vector<Operation> operations_on(const Number& number);

}  // namespace test
