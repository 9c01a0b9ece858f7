// SPDX-License-Identifier: BSD-3-Clause
//
// reach whole|middle|later|user: memory that CMA cannot read, but that MPI can use. whole: a buffer
// of such memory (secret memory; the kernel may lack it). middle: a buffer with such memory in its
// middle. later: such memory replaces the middle of buffers that were used before. user: processes
// change their user, and may not read each other any more (only root can; for other users they
// become undumpable).
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

constexpr size_t page = 4096;

// Begins a little after the start of a page, by a different offset on each rank.
int* map_buffer(int rank) {
  void* const pages =
      mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) test::fail("no pages");
  return static_cast<int*>(pages) + 4 * (rank + 1);
}

// Replaces pages of the buffer, from `begin` for `size` bytes, with secret memory.
void hide(int* buffer, size_t begin, size_t size) {
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
  char* const first = reinterpret_cast<char*>(buffer) - reinterpret_cast<uintptr_t>(buffer) % page;
  void* const place = first + begin;
  const void* const got =
      mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, secret, 0);
  if (got != place) test::fail("no secret pages");
  close(secret);
}

void hide_all(const Buffers& buffers, const std::string& how) {
  for (int* const buffer : {buffers.in, buffers.out}) {
    how == "whole" ? hide(buffer, 0, bytes + page) : hide(buffer, bytes / 4, bytes / 2);
  }
}

void change_user() {
  constexpr uid_t nobody = 65534;
  const bool is_root = geteuid() == 0;
  if (is_root && setresuid(nobody, nobody, nobody) != 0) test::fail("can't change the user");
  prctl(PR_SET_DUMPABLE, 0);
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

void broadcast(const Buffers& at, int rank, int root, int round) {
  if (rank == root) fill(at.out, root, round);
  MPI_Bcast(at.out, count, MPI_INT, root, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i) {
    if (at.out[i] != value(root, i, round)) test::fail("broadcast: wrong at " + std::to_string(i));
  }
}

// Each rank gets a share of every rank's memory: the one for it, or the first.
void exchange(const Buffers& at, int rank, int ranks, int round, bool all_to_all) {
  const int share = static_cast<int>(count) / ranks;
  all_to_all ? MPI_Alltoall(at.in, share, MPI_INT, at.out, share, MPI_INT, MPI_COMM_WORLD)
             : MPI_Allgather(at.in, share, MPI_INT, at.out, share, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < share * ranks; ++i) {
    const int there = (all_to_all ? rank * share : 0) + i % share;
    if (at.out[i] != value(i / share, static_cast<size_t>(there), round)) {
      test::fail("exchange: wrong at " + std::to_string(i));
    }
  }
}

void reduce(const Buffers& at, int rank, int ranks, int root, int round) {
  MPI_Reduce(at.in, at.out, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  if (rank == root) check_sum(at.out, ranks, round, "reduce");
  MPI_Allreduce(at.in, at.out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check_sum(at.out, ranks, round, "allreduce");
  std::memcpy(at.out, at.in, bytes);
  MPI_Allreduce(MPI_IN_PLACE, at.out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check_sum(at.out, ranks, round, "allreduce in place");
}

void communicate(const Buffers& at, int rank, int ranks, int round) {
  const int root = round % ranks;
  fill(at.in, rank, round);
  broadcast(at, rank, root, round);
  exchange(at, rank, ranks, round, true);
  exchange(at, rank, ranks, round, false);
  reduce(at, rank, ranks, root, round);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  if (argc != 2) test::fail("reach whole|middle|later|user");
  const std::string how = argv[1];
  const Buffers buffers{map_buffer(test::rank), map_buffer(test::rank)};
  if (how == "whole" || (how == "middle" && test::rank > 0)) hide_all(buffers, how);
  communicate(buffers, test::rank, test::size, 0);
  if (how == "later") hide_all(buffers, how);
  if (how == "user") change_user();
  for (int round = 1; round < 4; ++round) communicate(buffers, test::rank, test::size, round);
  return test::finish("reach");
}
