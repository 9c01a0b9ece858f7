// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes of all constructions for tests, each with its type map worked out beside MPI, so that
// tests know where every byte of a message belongs.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"

namespace test {

// Bytes of a type map, in the order of the signature.
struct Segment {
  ptrdiff_t at;
  size_t bytes;
  size_t padding = 0;  // so many of them, the last, hold no value: MPI may leave them behind
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

// Units in a row.
ShapedType contiguous_type(const Unit& unit, size_t units);
// One of some fifteen constructions by chance, committed. Elements do not overlap if at most
// `count` of them stand in a row.
ShapedType draw_type(const Unit& unit, size_t units, size_t count, Random& random);
// A construction of constructions; `inner` units make the inner one, which divides `units`.
ShapedType draw_nested_type(const Unit& unit, size_t units, size_t inner, size_t count,
                            Random& random);
// A type without any unit, but perhaps with an extent.
ShapedType draw_empty_type(const Unit& unit, Random& random);
void free_type(ShapedType* type);

// What a call may do to a byte: it is of no concern to it, it gets a value, or it may get any.
enum class Fate : uint8_t { kept, defined, any };

// Memory for blocks of a type, with room before and behind that must stay as it is.
class Memory {
 public:
  struct Block {
    ptrdiff_t displacement;  // in extents
    size_t count;
  };
  // The buffer lies `shift` bytes beside where it is aligned best.
  Memory(const ShapedType& type, std::vector<Block> blocks, uint64_t pattern, size_t shift = 0);

  // What MPI is given.
  std::byte* buffer() { return bytes_.data() + origin_; }
  // Where a block's element begins.
  std::byte* element(size_t block, size_t index);
  // Puts a message into a block, as the type map says.
  void write(size_t block, const std::vector<std::byte>& message);
  std::vector<std::byte> read(size_t block) const;
  // Fills everything, what must stay as it is too.
  void scramble(Random& random);
  // All bytes, with the room before and behind, and where the buffer starts among them.
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte>& bytes() { return bytes_; }
  ptrdiff_t origin() const { return origin_; }
  // Sets the fate of bytes of a block's elements from `first` up to `last`: those `where` in each.
  // Where others become defined, padding may get any value.
  void paint(size_t block, size_t first, size_t last, Fate fate, const std::vector<Segment>& where,
             std::vector<Fate>* fates) const;
  bool operator==(const Memory& other) const { return bytes_ == other.bytes_; }
  // Where they differ first, and how, for people.
  std::string difference(const Memory& expected) const;

 private:
  ptrdiff_t place(size_t block, size_t index) const;

  const ShapedType* type_;
  std::vector<Block> blocks_;
  std::vector<std::byte> bytes_;
  ptrdiff_t origin_ = 0;
};

}  // namespace test
