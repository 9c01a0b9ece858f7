// SPDX-License-Identifier: BSD-3-Clause
//
// large_counts [--seed S] [--cases N] [--bytes B]: functions with 64-bit counts (MPI_Bcast_c). Each
// rank chooses at random between MPI_X and MPI_X_c; both exchange the same messages. --bytes: one
// broadcast and one sum of so many bytes in one call. Exit status 77: this MPI has no such
// functions.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/mpi/harness.h"

#ifdef SLUICE_LARGE_COUNTS

namespace {

using test::Random;

using test::rank, test::size;

struct Case {
  Random shared, own;
  std::vector<int> counts, places;  // of each rank's block
  std::vector<MPI_Count> wide_counts;
  std::vector<MPI_Aint> wide_places;
  std::vector<int> input, result, expected;
  bool wide = false;  // this rank calls MPI_X_c

  explicit Case(uint64_t seed) : shared(seed), own(seed * 31 + static_cast<uint64_t>(rank) + 1) {
    const bool even = shared.chance(2);
    for (int i = 0; i < size; ++i) {
      const int n = static_cast<int>(shared.pick<size_t>({0, 1, 2, 7, 300, 5000}));
      counts.push_back(even && i > 0 ? counts[0] : n);
    }
    lay_out();
    input.resize(static_cast<size_t>(places.back() + counts.back() + 3));
    for (int& number : input) number = static_cast<int>(own.below(1000));
    result.assign(input.size(), -1);
    expected = result;
    wide = own.chance(2);
  }
  void lay_out() {
    places.clear();
    int place = 0;
    for (const int n : counts) {
      places.push_back(place);
      place += n + 3;
    }
    wide_counts.assign(counts.begin(), counts.end());
    wide_places.assign(places.begin(), places.end());
  }
  // Rotates so that rank i has for j what j has for i.
  void rotate() {
    std::ranges::rotate(counts, counts.begin() + rank);
    lay_out();
  }
  int total() const {
    int sum = 0;
    for (const int n : counts) sum += n;
    return sum;
  }
  void verify(const char* function) {
    test::check(result == expected, std::string(function) + (wide ? "_c" : "") + " on rank " +
                                        std::to_string(rank) + " of " + std::to_string(size));
  }
};

// Calls Sluice in either form, then MPI itself.
#define TRY(function, small, large, theirs) \
  if (c.wide) {                             \
    MPI_##function##_c large;               \
  } else {                                  \
    MPI_##function small;                   \
  }                                         \
  IN_MPI(MPI_##function) theirs;            \
  c.verify(#function)

void reduce(uint64_t seed) {
  const MPI_Comm world = MPI_COMM_WORLD;
  Case c(seed);
  const int n = c.counts[0], root = static_cast<int>(c.shared.below(static_cast<size_t>(size)));
  const int* in = c.input.data();
  int *out = c.result.data(), *right = c.expected.data();
  TRY(Allreduce, (in, out, n, MPI_INT, MPI_SUM, world), (in, out, n, MPI_INT, MPI_SUM, world),
      (in, right, n, MPI_INT, MPI_SUM, world));
  TRY(Reduce, (in, out, n, MPI_INT, MPI_MAX, root, world),
      (in, out, n, MPI_INT, MPI_MAX, root, world), (in, right, n, MPI_INT, MPI_MAX, root, world));
  TRY(Scan, (in, out, n, MPI_INT, MPI_SUM, world), (in, out, n, MPI_INT, MPI_SUM, world),
      (in, right, n, MPI_INT, MPI_SUM, world));
  TRY(Exscan, (in, out, n, MPI_INT, MPI_SUM, world), (in, out, n, MPI_INT, MPI_SUM, world),
      (in, right, n, MPI_INT, MPI_SUM, world));
  TRY(Reduce_scatter, (in, out, c.counts.data(), MPI_INT, MPI_SUM, world),
      (in, out, c.wide_counts.data(), MPI_INT, MPI_SUM, world),
      (in, right, c.counts.data(), MPI_INT, MPI_SUM, world));
  if (n * size > c.total()) return;
  TRY(Reduce_scatter_block, (in, out, n, MPI_INT, MPI_MIN, world),
      (in, out, n, MPI_INT, MPI_MIN, world), (in, right, n, MPI_INT, MPI_MIN, world));
}

void gather(uint64_t seed) {
  const MPI_Comm world = MPI_COMM_WORLD;
  Case c(seed);
  const int own = c.counts[static_cast<size_t>(rank)], n = c.counts[0];
  const int root = static_cast<int>(c.shared.below(static_cast<size_t>(size)));
  if (rank == root) c.result = c.expected = c.input;
  const int* in = c.input.data();
  int *out = c.result.data(), *right = c.expected.data();
  TRY(Bcast, (out, n, MPI_INT, root, world), (out, n, MPI_INT, root, world),
      (right, n, MPI_INT, root, world));
  TRY(Allgatherv, (in, own, MPI_INT, out, c.counts.data(), c.places.data(), MPI_INT, world),
      (in, own, MPI_INT, out, c.wide_counts.data(), c.wide_places.data(), MPI_INT, world),
      (in, own, MPI_INT, right, c.counts.data(), c.places.data(), MPI_INT, world));
  if (n * size <= c.total()) {
    TRY(Allgather, (in, n, MPI_INT, out, n, MPI_INT, world),
        (in, n, MPI_INT, out, n, MPI_INT, world), (in, n, MPI_INT, right, n, MPI_INT, world));
    TRY(Alltoall, (in, n, MPI_INT, out, n, MPI_INT, world),
        (in, n, MPI_INT, out, n, MPI_INT, world), (in, n, MPI_INT, right, n, MPI_INT, world));
  }
  c.rotate();
  const int* counts = c.counts.data();
  const MPI_Count* wide = c.wide_counts.data();
  TRY(Alltoallv,
      (in, counts, c.places.data(), MPI_INT, out, counts, c.places.data(), MPI_INT, world),
      (in, wide, c.wide_places.data(), MPI_INT, out, wide, c.wide_places.data(), MPI_INT, world),
      (in, counts, c.places.data(), MPI_INT, right, counts, c.places.data(), MPI_INT, world));
}

// Gathers and scatters. Other ranks than the root may not look at arrays.
void move_by_root(uint64_t seed) {
  const MPI_Comm world = MPI_COMM_WORLD;
  Case c(seed);
  const int own = c.counts[static_cast<size_t>(rank)], n = c.counts[0];
  const int root = static_cast<int>(c.shared.below(static_cast<size_t>(size)));
  const bool is_root = rank == root;
  const int *in = c.input.data(), *counts = is_root ? c.counts.data() : nullptr;
  const int* places = is_root ? c.places.data() : nullptr;
  const MPI_Count* wide = is_root ? c.wide_counts.data() : nullptr;
  const MPI_Aint* wide_places = is_root ? c.wide_places.data() : nullptr;
  int *out = c.result.data(), *right = c.expected.data();
  TRY(Gatherv, (in, own, MPI_INT, out, counts, places, MPI_INT, root, world),
      (in, own, MPI_INT, out, wide, wide_places, MPI_INT, root, world),
      (in, own, MPI_INT, right, counts, places, MPI_INT, root, world));
  TRY(Scatterv, (in, counts, places, MPI_INT, out, own, MPI_INT, root, world),
      (in, wide, wide_places, MPI_INT, out, own, MPI_INT, root, world),
      (in, counts, places, MPI_INT, right, own, MPI_INT, root, world));
  if (n * size > c.total()) return;
  TRY(Gather, (in, n, MPI_INT, out, n, MPI_INT, root, world),
      (in, n, MPI_INT, out, n, MPI_INT, root, world),
      (in, n, MPI_INT, right, n, MPI_INT, root, world));
  TRY(Scatter, (in, n, MPI_INT, out, n, MPI_INT, root, world),
      (in, n, MPI_INT, out, n, MPI_INT, root, world),
      (in, n, MPI_INT, right, n, MPI_INT, root, world));
}

// More elements in one call than an int can count.
void move_much(uint64_t bytes) {
  std::vector<unsigned char> data(bytes);
  const auto number = [](size_t i) { return static_cast<unsigned char>(i * 2654435761U >> 24); };
  for (size_t i = 0; rank == 0 && i < bytes; ++i) data[i] = number(i);
  const auto count = static_cast<MPI_Count>(bytes);
  MPI_Bcast_c(data.data(), count, MPI_UNSIGNED_CHAR, 0, MPI_COMM_WORLD);
  size_t wrong = 0;
  for (size_t i = 0; i < bytes; ++i) wrong += data[i] != number(i);
  test::check(wrong == 0, "a broadcast of " + std::to_string(bytes) + " bytes");
  MPI_Allreduce_c(MPI_IN_PLACE, data.data(), count, MPI_UNSIGNED_CHAR, MPI_BXOR, MPI_COMM_WORLD);
  for (size_t i = 0; i < bytes; ++i) wrong += data[i] != (size % 2 ? number(i) : 0);
  test::check(wrong == 0, "a reduction of " + std::to_string(bytes) + " bytes");
}

// A block that no int counts, in a call that MPI does because it has won the short ones. Only rank
// 0 has one, so the others see nothing special.
void move_much_by_mpi(uint64_t bytes) {
  const auto ranks = static_cast<size_t>(size);
  std::vector<MPI_Count> counts(ranks, 1);
  std::vector<MPI_Aint> places(ranks);
  for (size_t i = 0; i < ranks; ++i) places[i] = static_cast<MPI_Aint>(i);
  std::vector<unsigned char> few(ranks), got(ranks);
  const auto call = [&](const void* from, void* to) {
    MPI_Alltoallv_c(from, counts.data(), places.data(), MPI_BYTE, to, counts.data(), places.data(),
                    MPI_BYTE, MPI_COMM_WORLD);
  };
  const auto last =
      reinterpret_cast<const char* (*)(MPI_Comm)>(dlsym(RTLD_DEFAULT, "sluice_last_algorithm"));
  // More in a row than a window has.
  int by_mpi = 0;
  for (int i = 0; i < 50000 && by_mpi < 100; ++i) {
    call(few.data(), got.data());
    by_mpi = last && std::string(last(MPI_COMM_WORLD)) == "mpi" ? by_mpi + 1 : 0;
  }
  test::check(by_mpi == 100, "MPI has won alltoallv");
  for (MPI_Count& count : counts) count = 0;
  if (rank == 0) counts[0] = static_cast<MPI_Count>(bytes);
  std::vector<unsigned char> from(rank == 0 ? bytes : 1, 0x5a), to(from.size());
  call(from.data(), to.data());
  test::check(rank != 0 || from == to, "an alltoallv of " + std::to_string(bytes) + " bytes");
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  if (const uint64_t bytes = options.number("bytes", 0); bytes > 0) {
    move_much(bytes);
  } else if (const uint64_t block = options.number("by-mpi", 0); block > 0) {
    move_much_by_mpi(block);
  } else {
    Random cases(test::agree_on_seed(options));
    for (uint64_t i = 0; i < options.number("cases", 100); ++i) {
      reduce(cases.next());
      gather(cases.next());
      move_by_root(cases.next());
    }
  }
  return test::finish("large_counts");
}

#else

int main() {
  std::printf("this MPI has no functions for large counts\n");
  return 77;
}

#endif
