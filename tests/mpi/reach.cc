// SPDX-License-Identifier: BSD-3-Clause
//
// reach user|whole|middle: memory that other processes could reach when they first needed it, and
// then can't, which is nothing to MPI. user: processes change their user, and may not read each
// other any more (root alone can; others are only made undumpable). whole, middle: other memory, of
// a kind that is never shared, takes the place of a buffer or of its middle; the kernel may have
// none.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/mpi/harness.h"

namespace {

constexpr size_t bytes = size_t{1} << 20, count = bytes / sizeof(int);

struct Buffers {
  int* in;
  int* out;
};

int* map_pages() {
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) test::fail("no pages");
  return static_cast<int*>(pages);
}

// The pages from `begin` on become secret.
void hide(int* pages, size_t begin, size_t size) {
#ifdef SYS_memfd_secret
  const int secret = static_cast<int>(syscall(SYS_memfd_secret, 0));
#else
  const int secret = -1;
#endif
  if (secret < 0 || ftruncate(secret, static_cast<off_t>(size)) != 0) {
    std::printf("no secret memory here\n");
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 77);
  }
  void* const place = reinterpret_cast<char*>(pages) + begin;
  const void* const got =
      mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, secret, 0);
  if (got != place) test::fail("no secret pages");
  close(secret);
}

void change(const std::string& how, const Buffers& buffers) {
  if (how == "user") {
    constexpr uid_t nobody = 65534;
    const bool is_root = geteuid() == 0;
    if (is_root && setresuid(nobody, nobody, nobody) != 0) test::fail("can't change the user");
    prctl(PR_SET_DUMPABLE, 0);
    return;
  }
  for (int* const pages : {buffers.in, buffers.out}) {
    hide(pages, how == "whole" ? 0 : bytes / 4, how == "whole" ? bytes : bytes / 2);
  }
}

int value(int rank, size_t i, int round) { return static_cast<int>(i % 1000) * (rank + 1) + round; }

void fill(int* to, int rank, int round) {
  for (size_t i = 0; i < count; ++i) to[i] = value(rank, i, round);
}

void check_sum(const int* sum, int ranks, int round, const char* what) {
  for (size_t i = 0; i < count; ++i) {
    int expected = 0;
    for (int rank = 0; rank < ranks; ++rank) expected += value(rank, i, round);
    if (sum[i] != expected) test::fail(std::string(what) + ": wrong at " + std::to_string(i));
  }
  test::check(true, what);
}

void communicate(const Buffers& at, int rank, int ranks, int round) {
  fill(at.in, rank, round);
  MPI_Allreduce(at.in, at.out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check_sum(at.out, ranks, round, "allreduce");
  std::memcpy(at.out, at.in, bytes);
  MPI_Allreduce(MPI_IN_PLACE, at.out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check_sum(at.out, ranks, round, "allreduce in place");
  const int root = round % ranks;
  MPI_Reduce(at.in, at.out, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  if (rank == root) check_sum(at.out, ranks, round, "reduce");
  const int share = static_cast<int>(count) / ranks;
  MPI_Alltoall(at.in, share, MPI_INT, at.out, share, MPI_INT, MPI_COMM_WORLD);
  for (size_t i = 0; i < static_cast<size_t>(share * ranks); ++i) {
    const int from = static_cast<int>(i) / share;
    const size_t there = static_cast<size_t>(rank * share) + i % static_cast<size_t>(share);
    if (at.out[i] != value(from, there, round)) test::fail("alltoall: wrong");
  }
  if (rank == root) fill(at.out, root, round);
  MPI_Bcast(at.out, count, MPI_INT, root, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i) {
    if (at.out[i] != value(root, i, round)) test::fail("broadcast: wrong");
  }
  test::check(true, "moves");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 2) test::fail("reach user|whole|middle");
  const Buffers buffers{map_pages(), map_pages()};
  communicate(buffers, rank, ranks, 0);
  change(argv[1], buffers);
  for (int round = 1; round < 4; ++round) communicate(buffers, rank, ranks, round);
  test::summarize("reach");
  MPI_Finalize();
  return 0;
}
