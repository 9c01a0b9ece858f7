// SPDX-License-Identifier: BSD-3-Clause
//
// How far two results of one reduction may differ because of another order of operations. Integers,
// logical values, bits, minima and maxima must be equal. With p operands, u half of the machine
// epsilon, and to first order in u (Higham, "Accuracy and Stability of Numerical Algorithms", 3.1
// and 4.2):
//   a sum in any order is within (p-1) u sum|x| of the exact one, so two within (p-1) 2u sum|x|;
//   a product within (p-1) u |x|, so two within (p-1) 2u |x|;
//   complex sums part by part; complex products, with an error of at most sqrt(5) u of the
//   absolute value per step (Brent, Percival and Zimmermann, 2007), within (p-1) sqrt(5) 2u |x|.
#pragma once

#include <string>
#include <vector>

#include "tests/mpi/numbers.h"
#include "tests/mpi/shapes.h"

namespace test {

// The bytes of an element that hold its value; some bytes of a long double hold nothing.
std::vector<Segment> value_bytes(const Number& number);

bool is_rounded(const Number& number);

// Fills n elements with values on which the operation is defined. Products neither overflow nor
// underflow on eight ranks; sums contain some infinities and NaNs.
void draw_values(const Number& number, MPI_Op op, Memory* memory, size_t n, Random& random);

// The sum of each part's magnitude over the ranks whose operands `reduce` combines: MPI's own
// MPI_Allreduce, MPI_Scan or MPI_Exscan. For the bounds of sums. Collective.
std::vector<long double> sums_of_magnitudes(const Number& number, MPI_Op op, Memory* input,
                                            size_t n, decltype(&MPI_Allreduce) reduce,
                                            MPI_Comm comm);

// Empty if `ours` and `theirs`, results of element `index`, differ by no more than allowed.
std::string difference_beyond_rounding(const Number& number, MPI_Op op, int ranks,
                                       const std::vector<long double>& sums, size_t index,
                                       const std::byte* ours, const std::byte* theirs);

}  // namespace test
