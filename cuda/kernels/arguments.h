// SPDX-License-Identifier: BSD-3-Clause
//
// What the module hands to its kernels. Each kernel has one parameter, a structure of these; a grid
// has one dimension. Addresses are numbers here, as they are to the driver.
#pragma once

namespace sluice::cuda::kernels {

inline constexpr unsigned most_operands = 16, most_blocks = 160, vector_bytes = 16;

// What reduce_* do. (Their names say for which elements. Logical types are integers; a sum of
// complex numbers is one of twice as many real ones.)
enum class Action : unsigned {
  sum,
  prod,
  min,
  max,
  logical_and,
  logical_or,
  logical_xor,
  bit_and,
  bit_or,
  bit_xor,
  unsigned_min,
  unsigned_max
};

// out[i] = ((operand[0][i] op operand[1][i]) op operand[2][i]) ... A grid has `items`: first
// `vectors`, each of vector_bytes, which lie behind the first `head` elements and are aligned to
// their size in all operands and `out`; then each other element. `out` may be an operand.
struct Reduce {
  unsigned long long operand[most_operands];
  unsigned long long out;
  unsigned long long items, head, vectors;
  unsigned operands;
  Action action;
};

// Copies rows of equal length, at equal distances. `unit`, 1 to 16, a power of two, divides
// addresses, strides and bytes. A grid has `units`, below 2^31.
struct CopyRows {
  unsigned long long from, to;
  long long from_stride, to_stride;
  unsigned units, units_a_row;
  unsigned unit;
};

// Copies blocks of any length from and to anywhere: one warp a block. `unit`: see above.
struct CopyBlock {
  unsigned long long from, to;
  unsigned units, unit;
};
struct CopyBlocks {
  CopyBlock block[most_blocks];
  unsigned blocks;
};
static_assert(sizeof(CopyBlocks) <= 4096, "what a kernel takes at most");

}  // namespace sluice::cuda::kernels
