// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mpi/shapes.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace test {
namespace {

size_t size_of(const std::vector<Segment>& map) {
  size_t bytes = 0;
  for (const Segment& segment : map) bytes += segment.bytes;
  return bytes;
}

// The units' segments at displacements in bytes: the type map of every construction.
std::vector<Segment> spread(const Unit& unit, const std::vector<ptrdiff_t>& places) {
  std::vector<Segment> map;
  for (const ptrdiff_t place : places) {
    for (Segment segment : unit.map) {
      segment.at += place;
      map.push_back(segment);
    }
  }
  return map;
}

std::vector<ptrdiff_t> evenly(size_t n, ptrdiff_t stride) {
  std::vector<ptrdiff_t> places(n);
  for (size_t i = 0; i < n; ++i) places[i] = static_cast<ptrdiff_t>(i) * stride;
  return places;
}

// Completes a type that MPI made. The extent is MPI's own, which the standard defines.
ShapedType finish(MPI_Datatype handle, std::vector<Segment> map, const char* construction) {
  MPI_Type_commit(&handle);
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(handle, &lower, &extent);
  return {handle, std::move(map), extent, false, construction};
}

ShapedType contiguous(const Unit& unit, size_t units, bool twice) {
  MPI_Datatype type, copy;
  MPI_Type_contiguous(static_cast<int>(units), unit.handle, &type);
  const auto map = spread(unit, evenly(units, unit.extent));
  if (!twice) return finish(type, map, "contiguous");
  MPI_Type_dup(type, &copy);
  MPI_Type_free(&type);
  return finish(copy, map, "dup");
}

ShapedType strided(const Unit& unit, size_t units, int stride) {
  MPI_Datatype type;
  MPI_Type_vector(static_cast<int>(units), 1, stride, unit.handle, &type);
  return finish(type, spread(unit, evenly(units, stride * unit.extent)), "vector");
}

ShapedType backwards(const Unit& unit, size_t units) {
  MPI_Datatype type;
  MPI_Type_create_hvector(static_cast<int>(units), 1, -2 * unit.extent, unit.handle, &type);
  return finish(type, spread(unit, evenly(units, -2 * unit.extent)), "hvector, negative stride");
}

// A permutation of the units, with or without gaps.
ShapedType shuffled(const Unit& unit, size_t units, bool gaps, Random& random) {
  std::vector<int> places(units);
  std::iota(places.begin(), places.end(), 0);
  for (size_t i = units; i > 1; --i) std::swap(places[i - 1], places[random.below(i)]);
  if (gaps) std::ranges::for_each(places, [](int& place) { place = 3 * place - 5; });
  MPI_Datatype type;
  MPI_Type_create_indexed_block(static_cast<int>(units), 1, places.data(), unit.handle, &type);
  std::vector<ptrdiff_t> bytes;
  for (const int place : places) bytes.push_back(place * unit.extent);
  return finish(type, spread(unit, bytes), gaps ? "indexed, shuffled" : "indexed permutation");
}

// Blocks of growing length, some adjacent. Some are empty: no elements, or elements of size 0.
ShapedType structured(const Unit& unit, size_t units, ptrdiff_t gap) {
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  std::vector<MPI_Datatype> types;
  std::vector<ptrdiff_t> bytes;
  ptrdiff_t at = 8 * gap;
  MPI_Datatype nothing;
  MPI_Type_contiguous(0, unit.handle, &nothing);
  const auto add = [&](size_t n, ptrdiff_t place, MPI_Datatype part) {
    lengths.push_back(static_cast<int>(n));
    places.push_back(place);
    types.push_back(part);
  };
  for (size_t done = 0, length = 1; done < units; ++length) {
    const size_t some = std::min(length, units - done);
    add(some, at, unit.handle);
    add(0, -1000, unit.handle);
    add(1, -40, nothing);
    for (size_t i = 0; i < some; ++i, at += unit.extent) bytes.push_back(at);
    at += gap * unit.extent;
    done += some;
  }
  MPI_Datatype type, sized;
  MPI_Type_create_struct(static_cast<int>(lengths.size()), lengths.data(), places.data(),
                         types.data(), &type);
  MPI_Type_create_resized(type, bytes.front(), at - bytes.front(), &sized);
  MPI_Type_free(&type);
  MPI_Type_free(&nothing);
  return finish(sized, spread(unit, bytes), gap ? "struct with gaps" : "struct without gaps");
}

ShapedType resized(const Unit& unit, size_t units) {
  MPI_Datatype type, sized;
  MPI_Type_contiguous(static_cast<int>(units), unit.handle, &type);
  const auto room = static_cast<ptrdiff_t>(units + 3) * unit.extent;
  MPI_Type_create_resized(type, -2 * unit.extent, room, &sized);
  MPI_Type_free(&type);
  return finish(sized, spread(unit, evenly(units, unit.extent)), "resized, negative lower bound");
}

// A column of a matrix: the next element begins beside this one, within its extent.
ShapedType column(const Unit& unit, size_t units, size_t columns) {
  MPI_Datatype type, sized;
  MPI_Type_vector(static_cast<int>(units), 1, static_cast<int>(columns), unit.handle, &type);
  MPI_Type_create_resized(type, 0, unit.extent, &sized);
  MPI_Type_free(&type);
  const auto stride = static_cast<ptrdiff_t>(columns) * unit.extent;
  return finish(sized, spread(unit, evenly(units, stride)), "column, interleaved");
}

// A rectangle of a matrix, or all of it.
ShapedType rectangle(const Unit& unit, size_t units, bool all) {
  const int columns = units % 2 == 0 ? 2 : 1, rows = static_cast<int>(units) / columns;
  const int margin = all ? 0 : 1;
  const int sizes[] = {rows + 2 * margin, columns + 2 * margin};
  const int pieces[] = {rows, columns}, starts[] = {margin, margin};
  MPI_Datatype type;
  MPI_Type_create_subarray(2, sizes, pieces, starts, MPI_ORDER_C, unit.handle, &type);
  std::vector<ptrdiff_t> places;
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < columns; ++i) {
      places.push_back(((row + margin) * sizes[1] + margin + i) * unit.extent);
    }
  }
  return finish(type, spread(unit, places), all ? "subarray, whole" : "subarray");
}

// One dimension of a distributed array: the rows of `process`, if `size` rows are distributed in
// blocks over `processes`.
struct Dealt {
  int size, block, processes, process;

  std::vector<ptrdiff_t> rows() const {
    std::vector<ptrdiff_t> list;
    for (int i = 0; i < size; ++i) {
      if (i / block % processes == process) list.push_back(i);
    }
    return list;
  }
};

// A process's part of a matrix. Rows are distributed cyclically, columns in blocks, of which the
// last may be shorter.
ShapedType distributed(const Unit& unit, size_t units, Random& random) {
  const int columns = units % 3 == 0 ? 3 : 1, rows = static_cast<int>(units) / columns;
  const int block = random.chance(2) ? rows : 1;
  const Dealt down{2 * rows, block, 2, static_cast<int>(random.below(2))};
  const int place = static_cast<int>(random.below(3));
  const int lacking = static_cast<int>(random.below(columns == 1 ? 2 : 3));
  const int width = place == 2 ? columns + lacking : columns;
  const Dealt across{3 * width - lacking, width, 3, place};
  const bool c_order = random.chance(2);
  const int sizes[] = {down.size, across.size};
  const int distributions[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
  const int arguments[] = {block, MPI_DISTRIBUTE_DFLT_DARG}, processes[] = {2, 3};
  MPI_Datatype type;
  MPI_Type_create_darray(6, down.process * 3 + across.process, 2, sizes, distributions, arguments,
                         processes, c_order ? MPI_ORDER_C : MPI_ORDER_FORTRAN, unit.handle, &type);
  std::vector<ptrdiff_t> places;
  const auto slow = c_order ? down.rows() : across.rows();
  const auto fast = c_order ? across.rows() : down.rows();
  for (const ptrdiff_t i : slow) {
    for (const ptrdiff_t j : fast) {
      places.push_back((i * (c_order ? across.size : down.size) + j) * unit.extent);
    }
  }
  return finish(type, spread(unit, places), "distributed array");
}

// Rectangles within rectangles: a type of a type of a type.
ShapedType nested(const Unit& unit, size_t units) {
  const int inner = units % 4 == 0 ? 4 : units % 3 == 0 ? 3 : 1;
  const int outer = static_cast<int>(units) / inner;
  MPI_Datatype row, padded, all;
  MPI_Type_vector(inner, 1, 2, unit.handle, &row);
  const ptrdiff_t pitch = (2 * inner + 1) * unit.extent;
  MPI_Type_create_resized(row, -unit.extent, pitch, &padded);
  const int size = outer + 2, start = 1;
  MPI_Type_create_subarray(1, &size, &outer, &start, MPI_ORDER_FORTRAN, padded, &all);
  MPI_Type_free(&row);
  MPI_Type_free(&padded);
  std::vector<ptrdiff_t> places;
  for (int i = 0; i < outer; ++i) {
    for (int j = 0; j < inner; ++j) places.push_back((i + 1) * pitch + 2 * j * unit.extent);
  }
  return finish(all, spread(unit, places), "subarray of resized vectors");
}

#if MPI_VERSION >= 4
// Types made with large counts return them by another function (MPI_Type_get_contents_c).
ShapedType large_counts(const Unit& unit, size_t units, Random& random) {
  const auto n = static_cast<MPI_Count>(units);
  const std::vector<MPI_Count> lengths(units, 1);
  std::vector<MPI_Count> bytes;
  for (MPI_Count i = 0; i < n; ++i) bytes.push_back(3 * (n - i) * unit.extent);
  const std::vector<ptrdiff_t> backwards(bytes.begin(), bytes.end());
  const std::vector<MPI_Datatype> types(units, unit.handle);
  const MPI_Count size = n + 2, start = 2;
  MPI_Datatype type;
  switch (random.below(6)) {
    case 0:
      MPI_Type_vector_c(n, 1, 2, unit.handle, &type);
      return finish(type, spread(unit, evenly(units, 2 * unit.extent)), "vector_c");
    case 1:
      MPI_Type_create_hvector_c(n, 1, 2 * unit.extent, unit.handle, &type);
      return finish(type, spread(unit, evenly(units, 2 * unit.extent)), "hvector_c");
    case 2:
      MPI_Type_create_hindexed_c(n, lengths.data(), bytes.data(), unit.handle, &type);
      return finish(type, spread(unit, backwards), "hindexed_c");
    case 3:
      MPI_Type_create_hindexed_block_c(n, 1, bytes.data(), unit.handle, &type);
      return finish(type, spread(unit, backwards), "hindexed_block_c");
    case 4:
      MPI_Type_create_struct_c(n, lengths.data(), bytes.data(), types.data(), &type);
      return finish(type, spread(unit, backwards), "struct_c");
    default: {
      MPI_Type_create_subarray_c(1, &size, &n, &start, MPI_ORDER_C, unit.handle, &type);
      auto map = spread(unit, evenly(units, unit.extent));
      for (Segment& segment : map) segment.at += 2 * unit.extent;
      return finish(type, map, "subarray_c");
    }
  }
}
#endif

std::byte pattern_at(uint64_t pattern, size_t i) {
  return static_cast<std::byte>((pattern + i * 0x9d) >> 1 & 0xff);
}

}  // namespace

size_t Unit::size() const { return size_of(map); }
size_t ShapedType::size() const { return size_of(map); }

std::vector<Unit> all_units() {
  return {{MPI_INT, {{0, 4}}, 4},
          {MPI_CHAR, {{0, 1}}, 1},
          {MPI_DOUBLE, {{0, 8}}, 8},
          {MPI_DOUBLE_INT, {{0, 8}, {8, 4}}, 16},
          {MPI_SHORT_INT, {{0, 2}, {4, 4}}, 8}};
}

ShapedType contiguous_type(const Unit& unit, size_t units) {
  return contiguous(unit, units, false);
}

ShapedType draw_type(const Unit& unit, size_t units, size_t count, Random& random) {
  const size_t kinds = units == 1 ? 17 : 16;
  switch (random.below(kinds)) {
    case 0:
      return contiguous(unit, units, false);
    case 1:
      return contiguous(unit, units, true);
    case 2:
      return strided(unit, units, 2 + static_cast<int>(random.below(3)));
    case 3:
      return strided(unit, units, 1);
    case 4:
      return backwards(unit, units);
    case 5:
      return shuffled(unit, units, true, random);
    case 6:
      return shuffled(unit, units, false, random);
    case 7:
      return structured(unit, units, 2);
    case 8:
      return structured(unit, units, 0);
    case 9:
      return resized(unit, units);
    case 10:
      return column(unit, units, std::max<size_t>(count, 1));
    case 11:
      return rectangle(unit, units, false);
    case 12:
      return rectangle(unit, units, true);
    case 13:
      return distributed(unit, units, random);
    case 14:
      return nested(unit, units);
    case 15:
#if MPI_VERSION >= 4
      return large_counts(unit, units, random);
#else
      return strided(unit, units, 5);
#endif
    default:
      return {unit.handle, unit.map, unit.extent, true, "predefined"};
  }
}

ShapedType draw_nested_type(const Unit& unit, size_t units, size_t inner, size_t count,
                            Random& random) {
  ShapedType part = draw_type(unit, inner, 1, random);
  while (part.construction.starts_with("column")) {  // overlaps itself in a row
    free_type(&part);
    part = draw_type(unit, inner, 1, random);
  }
  ShapedType whole = draw_type({part.handle, part.map, part.extent}, units / inner, count, random);
  if (!whole.predefined) {
    whole.construction += " of " + part.construction;
    free_type(&part);
    return whole;
  }
  return part;
}

ShapedType draw_empty_type(const Unit& unit, Random& random) {
  MPI_Datatype type;
  switch (random.below(3)) {
    case 0:
      MPI_Type_contiguous(0, unit.handle, &type);
      return finish(type, {}, "contiguous of nothing");
    case 1:
      MPI_Type_vector(3, 0, 5, unit.handle, &type);
      return finish(type, {}, "vector of nothing");
    default: {
      MPI_Datatype nothing;
      MPI_Type_contiguous(0, unit.handle, &nothing);
      MPI_Type_create_resized(nothing, -unit.extent, 4 * unit.extent, &type);
      MPI_Type_free(&nothing);
      return finish(type, {}, "nothing, resized");
    }
  }
}

void free_type(ShapedType* type) {
  if (!type->predefined) MPI_Type_free(&type->handle);
}

Memory::Memory(const ShapedType& type, std::vector<Block> blocks, uint64_t pattern, size_t shift)
    : type_(&type), blocks_(std::move(blocks)) {
  constexpr ptrdiff_t guard = 64;
  ptrdiff_t low = 0, high = 0;
  for (const Block& block : blocks_) {
    if (block.count == 0) continue;
    const ptrdiff_t first = block.displacement * type.extent;
    const ptrdiff_t last = first + (static_cast<ptrdiff_t>(block.count) - 1) * type.extent;
    for (const Segment& segment : type.map) {
      low = std::min({low, first + segment.at, last + segment.at});
      const auto end = segment.at + static_cast<ptrdiff_t>(segment.bytes);
      high = std::max({high, first + end, last + end});
    }
  }
  origin_ = guard - low + static_cast<ptrdiff_t>(shift);
  bytes_.resize(static_cast<size_t>(high - low + 2 * guard) + shift);
  for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = pattern_at(pattern, i);
}

ptrdiff_t Memory::place(size_t block, size_t index) const {
  return origin_ + (blocks_[block].displacement + static_cast<ptrdiff_t>(index)) * type_->extent;
}

std::byte* Memory::element(size_t block, size_t index) {
  return bytes_.data() + place(block, index);
}

void Memory::scramble(Random& random) {
  for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random.next());
}

void Memory::paint(size_t block, size_t first, size_t last, Fate fate,
                   const std::vector<Segment>& where, std::vector<Fate>* fates) const {
  for (size_t i = first; i < last; ++i) {
    for (const Segment& segment : where) {
      const auto from = fates->begin() + place(block, i) + segment.at;
      std::fill_n(from, segment.bytes, fate);
      if (fate == Fate::defined) {
        std::fill_n(from + static_cast<ptrdiff_t>(segment.bytes - segment.padding), segment.padding,
                    Fate::any);
      }
    }
  }
}

void Memory::write(size_t index, const std::vector<std::byte>& message) {
  const Block& block = blocks_[index];
  size_t done = 0;
  for (size_t i = 0; i < block.count; ++i) {
    const ptrdiff_t at = place(index, i);
    for (const Segment& segment : type_->map) {
      std::memcpy(bytes_.data() + at + segment.at, message.data() + done, segment.bytes);
      done += segment.bytes;
    }
  }
}

std::vector<std::byte> Memory::read(size_t index) const {
  std::vector<std::byte> message;
  for (size_t i = 0; i < blocks_[index].count; ++i) {
    for (const Segment& segment : type_->map) {
      const auto from = bytes_.begin() + place(index, i) + segment.at;
      message.insert(message.end(), from, from + static_cast<ptrdiff_t>(segment.bytes));
    }
  }
  return message;
}

std::string Memory::difference(const Memory& expected) const {
  const auto [mine, theirs] = std::ranges::mismatch(bytes_, expected.bytes_);
  if (mine == bytes_.end()) return "no difference";
  const auto number = [](std::byte b) { return std::to_string(static_cast<unsigned>(b)); };
  return "byte " + std::to_string(mine - bytes_.begin() - origin_) +
         " from the buffer's start is " + number(*mine) + ", not " + number(*theirs);
}

}  // namespace test
