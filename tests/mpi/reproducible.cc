// SPDX-License-Identifier: BSD-3-Clause
//
// reproducible: sums of floating-point numbers on all ranks, in messages of many shapes, by every
// reducing function. The operand of rank r at index i is the same in all of them. So with
// SLUICE_REPRODUCIBLE the sum at an index must have the same bits everywhere. Prints a digest of
// these bits, to compare with other algorithms and other hosts. reproducible free: does not
// compare, because it need not hold without the setting.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tests/mpi/harness.h"

namespace {

constexpr int most = 100000;

using test::rank, test::size;
bool compares = true;

// The bits of the sum at each index, from the first message that had it.
std::vector<uint64_t> seen(most);
std::vector<bool> known(most);

double operand(int index) {
  test::Random random(static_cast<uint64_t>(rank) << 32 | static_cast<uint64_t>(index));
  const auto exponent = static_cast<int>(random.below(24)) - 12;
  return std::ldexp(static_cast<double>(static_cast<int64_t>(random.next())), exponent);
}

void look(const double* result, int first, int n, const char* function) {
  for (int i = 0; i < n; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, result + i, sizeof bits);
    const auto index = static_cast<size_t>(first + i);
    if (!known[index]) {
      known[index] = true;
      seen[index] = bits;
    } else if (compares) {
      test::check(seen[index] == bits, std::string(function) + " of " + std::to_string(n) +
                                           " elements has other bits at " + std::to_string(index));
    }
  }
}

void sum_all(int n, int first) {
  std::vector<double> from(static_cast<size_t>(n)), to(from);
  for (int i = 0; i < n; ++i) from[static_cast<size_t>(i)] = operand(first + i);
  MPI_Allreduce(from.data(), to.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  look(to.data(), first, n, "allreduce");
  to = from;
  MPI_Allreduce(MPI_IN_PLACE, to.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  look(to.data(), first, n, "allreduce in place");
  const int root = n % size;
  MPI_Reduce(from.data(), to.data(), n, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
  if (rank == root) look(to.data(), first, n, "reduce");
}

void sum_scattered(int block) {
  std::vector<double> from(static_cast<size_t>(block * size)), to(static_cast<size_t>(block));
  for (int i = 0; i < block * size; ++i) from[static_cast<size_t>(i)] = operand(i);
  MPI_Reduce_scatter_block(from.data(), to.data(), block, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  look(to.data(), rank * block, block, "reduce_scatter");
}

uint64_t digest() {
  uint64_t sum = 14695981039346656037ULL;  // FNV-1a
  for (const uint64_t bits : seen) sum = (sum ^ bits) * 1099511628211ULL;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  compares = argc < 2;
  sum_all(most, 0);
  for (const int n : {1, 2, 3, 17, 1000, 4097, 30011}) sum_all(n, n % 5);
  for (const int block : {1, 5, 777, 12000}) sum_scattered(block);
  if (rank == 0) std::printf("bits %016lx\n", static_cast<unsigned long>(digest()));
  if (compares) test::summarize("reproducible");
  MPI_Finalize();
}
