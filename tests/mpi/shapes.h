// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes of all constructions. Each has a type map computed without MPI, so that tests know
// where every byte of a message belongs.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"

namespace test {

// Bytes of a type map, in signature order.
struct Segment {
  ptrdiff_t at;
  size_t bytes;
  size_t padding = 0;  // the last bytes, which hold no value: MPI may skip them
};

// A predefined type.
struct Unit {
  MPI_Datatype handle;
  std::vector<Segment> map;
  ptrdiff_t extent;

  size_t size() const;
};

// int, char, double, and the pairs (double, int) and (short, int), which have gaps.
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

// Adjacent units.
ShapedType contiguous_type(const Unit& unit, size_t units);
// A random one of about fifteen constructions, committed. Up to `count` consecutive elements do not
// overlap.
ShapedType draw_type(const Unit& unit, size_t units, size_t count, Random& random);
// A nested construction; the inner one has `inner` units, a divisor of `units`.
ShapedType draw_nested_type(const Unit& unit, size_t units, size_t inner, size_t count,
                            Random& random);
// A type without units, but perhaps with an extent.
ShapedType draw_empty_type(const Unit& unit, Random& random);
void free_type(ShapedType* type);

// What a call may do to a byte: leave it, define its value, or change it in any way.
enum class Fate : uint8_t { kept, defined, any };

// Memory for blocks of a type, with guards before and after.
class Memory {
 public:
  struct Block {
    ptrdiff_t displacement;  // in extents
    size_t count;
  };
  // The buffer begins `shift` bytes off its best alignment.
  Memory(const ShapedType& type, std::vector<Block> blocks, uint64_t pattern, size_t shift = 0);

  // The address to pass to MPI.
  std::byte* buffer() { return bytes_.data() + origin_; }
  // The address of an element of a block.
  std::byte* element(size_t block, size_t index);
  // Writes a message into a block, by the type map.
  void write(size_t block, const std::vector<std::byte>& message);
  std::vector<std::byte> read(size_t block) const;
  // Fills everything with random bytes, including guards and gaps.
  void scramble(Random& random);
  // All bytes, guards included, and where the buffer starts in them.
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte>& bytes() { return bytes_; }
  ptrdiff_t origin() const { return origin_; }
  // Sets the fate of the bytes `where` of a block's elements `first` to `last` - 1. If other bytes
  // become defined, padding may get any value.
  void paint(size_t block, size_t first, size_t last, Fate fate, const std::vector<Segment>& where,
             std::vector<Fate>* fates) const;
  bool operator==(const Memory& other) const { return bytes_ == other.bytes_; }
  // Describes the first difference.
  std::string difference(const Memory& expected) const;

 private:
  ptrdiff_t place(size_t block, size_t index) const;

  const ShapedType* type_;
  std::vector<Block> blocks_;
  std::vector<std::byte> bytes_;
  ptrdiff_t origin_ = 0;
};

}  // namespace test
