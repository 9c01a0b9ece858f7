// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes of all constructions for tests, each with its type map worked out beside MPI, so that
// tests know where every byte of a message belongs.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "tests/mpi/harness.h"

namespace test {

// Bytes of a type map, in the order of the signature.
struct Segment {
  ptrdiff_t at;
  size_t bytes;
};

// A predefined type.
struct Unit {
  MPI_Datatype handle;
  std::vector<Segment> map;
  ptrdiff_t extent;

  size_t size() const;
};

// int, char, double, and the pairs of double and int, of short and int, which have gaps.
std::vector<Unit> all_units();

// A datatype with the signature of `units` units.
struct ShapedType {
  MPI_Datatype handle;
  std::vector<Segment> map;
  ptrdiff_t extent = 0;
  bool predefined = false;
  std::string construction;

  size_t size() const;
};

// One of some ten constructions by chance, committed. Elements do not overlap if at most `count` of
// them stand in a row.
ShapedType draw_type(const Unit& unit, size_t units, size_t count, Random& random);
void free_type(ShapedType* type);

// Memory for blocks of a type, with room before and behind that must stay as it is.
class Memory {
 public:
  struct Block {
    ptrdiff_t displacement;  // in extents
    size_t count;
  };
  Memory(const ShapedType& type, std::vector<Block> blocks, uint64_t pattern);

  // What MPI is given.
  std::byte* buffer() { return bytes_.data() + origin_; }
  // Puts a message into a block, as the type map says.
  void write(size_t block, const std::vector<std::byte>& message);
  bool operator==(const Memory& other) const { return bytes_ == other.bytes_; }
  // Where they differ first, and how, for people.
  std::string difference(const Memory& expected) const;

 private:
  const ShapedType* type_;
  std::vector<Block> blocks_;
  std::vector<std::byte> bytes_;
  ptrdiff_t origin_ = 0;
};

}  // namespace test
