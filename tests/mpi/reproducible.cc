// SPDX-License-Identifier: BSD-3-Clause
//
// reproducible: sums of floating-point numbers on all ranks, in messages of many shapes, by every
// reducing function. The operand of rank r at index i is the same in all of them. So with
// SLUICE_REPRODUCIBLE the sum of the same ranks at an index must have the same bits everywhere.
// Prints a digest of these bits, to compare with other algorithms and other hosts. reproducible
// free: does not compare, because it need not hold without the setting.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tests/mpi/harness.h"

namespace {

constexpr int most = 100000;

using test::rank, test::size;
bool compares = true;

// Whose operands are in a sum.
enum class Operands : size_t { of_all, up_to_own, before_own };

// The bits of the sum at each index, from the first message that had it.
struct Sums {
  std::vector<uint64_t> seen = std::vector<uint64_t>(most);
  std::vector<bool> known = std::vector<bool>(most);
};
Sums sums[3];

double operand(int index) {
  test::Random random(static_cast<uint64_t>(rank) << 32 | static_cast<uint64_t>(index));
  const auto exponent = static_cast<int>(random.below(24)) - 12;
  return std::ldexp(static_cast<double>(static_cast<int64_t>(random.next())), exponent);
}

void look(const double* result, int first, int n, const char* function,
          Operands operands = Operands::of_all) {
  auto& [seen, known] = sums[static_cast<size_t>(operands)];
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

void sum_prefixes(int n, int first) {
  std::vector<double> from(static_cast<size_t>(n)), to(from);
  for (int i = 0; i < n; ++i) from[static_cast<size_t>(i)] = operand(first + i);
  MPI_Scan(from.data(), to.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  look(to.data(), first, n, "scan", Operands::up_to_own);
  to = from;
  MPI_Scan(MPI_IN_PLACE, to.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  look(to.data(), first, n, "scan in place", Operands::up_to_own);
  to = from;
  MPI_Exscan(from.data(), to.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  look(to.data(), first, n, "exscan", Operands::before_own);
  MPI_Exscan(MPI_IN_PLACE, from.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  look(from.data(), first, n, "exscan in place", Operands::before_own);
}

void sum_scattered(int block) {
  std::vector<double> from(static_cast<size_t>(block * size)), to(static_cast<size_t>(block));
  for (int i = 0; i < block * size; ++i) from[static_cast<size_t>(i)] = operand(i);
  MPI_Reduce_scatter_block(from.data(), to.data(), block, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  look(to.data(), rank * block, block, "reduce_scatter");
}

// On rank 0; of all ranks' sums.
uint64_t digest() {
  uint64_t own = 14695981039346656037ULL + static_cast<uint64_t>(rank), all = 0;  // FNV-1a
  for (const Sums& each : sums) {
    for (const uint64_t bits : each.seen) own = (own ^ bits) * 1099511628211ULL;
  }
  IN_MPI(MPI_Reduce)(&own, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  compares = argc < 2;
  for (const int n : {most, 1, 2, 3, 17, 1000, 4097, 30011}) {
    const int first = n == most ? 0 : n % 5;
    sum_all(n, first);
    sum_prefixes(n, first);
  }
  for (const int block : {1, 5, 777, 12000}) sum_scattered(block);
  const uint64_t bits = digest();
  if (rank == 0) std::printf("bits %016lx\n", static_cast<unsigned long>(bits));
  if (compares) test::summarize("reproducible");
  MPI_Finalize();
}
