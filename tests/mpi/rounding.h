// SPDX-License-Identifier: BSD-3-Clause
//
// How far two results of one reduction may differ, because they were taken in another order.
// Integers, logical values and bits not at all, nor minima and maxima. With p operands, u half of
// the machine epsilon, and to the first order in u (Higham, "Accuracy and Stability of Numerical
// Algorithms", 3.1 and 4.2):
//   a sum in any order is within (p-1) u sum|x| of the exact one, so two within (p-1) 2u sum|x|;
//   a product within (p-1) u |x|, so two within (p-1) 2u |x|;
//   complex sums part by part; complex products, whose every step errs by sqrt(5) u of the absolute
//   value at most (Brent, Percival and Zimmermann, 2007), within (p-1) sqrt(5) 2u |x|.
#pragma once

#include <string>
#include <vector>

#include "tests/mpi/numbers.h"
#include "tests/mpi/shapes.h"

namespace test {

// Where the bytes of an element lie that hold its value; a long double has some that hold nothing.
std::vector<Segment> value_bytes(const Number& number);

bool is_rounded(const Number& number);

// Fills n elements with any values on which the operation is defined: products neither overflow
// nor underflow on eight ranks; sums have infinities and NaNs now and then.
void draw_values(const Number& number, MPI_Op op, Memory* memory, size_t n, Random& random);

// The sum over all ranks of each part's magnitude, as the bounds of sums need them. Collective.
std::vector<long double> sums_of_magnitudes(const Number& number, MPI_Op op, Memory* input,
                                            size_t n, MPI_Comm comm);

// Empty if `ours` and `theirs`, results of element `index`, are as near as they must be.
std::string difference_beyond_rounding(const Number& number, MPI_Op op, int ranks,
                                       const std::vector<long double>& sums, size_t index,
                                       const std::byte* ours, const std::byte* theirs);

}  // namespace test
