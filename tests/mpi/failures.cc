// SPDX-License-Identifier: BSD-3-Clause
//
// failures kill FILE|leave|abort|memory|type|late|fork|invalid: the last rank goes without a word,
// without MPI_Finalize or by MPI_Abort while the others wait for it; or has no memory; or comes
// when the others have given up; or processes fork; or arguments make no sense.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

using Clock = std::chrono::steady_clock;

int rank = 0, size = 0;

void sum_up() {
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  test::check(sum == size, "a sum");
}

// Survivors learn of it within a second of asking for the dead rank's data, and every later call
// says so too. What they saw goes into a file.
void kill_one(const char* account) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == size - 1) std::raise(SIGKILL);
  std::vector<double> from(1 << 20, 1.0), to(from.size());
  const auto began = Clock::now();
  const int result =
      MPI_Allreduce(from.data(), to.data(), 1 << 20, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double took = std::chrono::duration<double>(Clock::now() - began).count();
  const int later = MPI_Barrier(MPI_COMM_WORLD);
  FILE* file = std::fopen(account, "a");
  std::fprintf(file, "rank %d: %s after %.3f s, %s\n", rank,
               result != MPI_SUCCESS ? "an error" : "no error", took,
               later != MPI_SUCCESS ? "and again" : "but no more");
  std::fclose(file);
  usleep(static_cast<useconds_t>(rank) * 200000);  // Open MPI's mpirun may hang if all go at once
  _exit(0);
}

// Limits this process's memory to what it has and so much more.
void leave_room_for(size_t bytes) {
  size_t pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (std::fscanf(file, "%zu", &pages) != 1) test::fail("no /proc/self/statm");
  std::fclose(file);
  const rlimit limit{pages * static_cast<size_t>(getpagesize()) + bytes, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
}

[[noreturn]] void tell_and_go(int result) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  std::printf("rank %d: %s\n", rank, text);
  std::fflush(stdout);
  sleep(1);  // MPICH ends a job as soon as a rank leaves like this
  _exit(0);
}

// One rank has no memory to unpack a broadcast into: all learn of it.
void run_out_of_memory() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int count = 100 << 20;
  MPI_Datatype spaced;
  MPI_Type_create_resized(MPI_CHAR, 0, 2, &spaced);
  MPI_Type_commit(&spaced);
  std::vector<char> data(2 * static_cast<size_t>(count));
  if (rank == size - 1) {
    leave_room_for(size_t{32} << 20);
  }
  const int result =
      MPI_Bcast(data.data(), count, rank == size - 1 ? spaced : MPI_CHAR, 0, MPI_COMM_WORLD);
  tell_and_go(result);
}

// One rank has no memory to find out what its datatype is like.
void describe_without_memory() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int count = 8 << 20;
  std::vector<int> places(count);
  std::iota(places.begin(), places.end(), 0);
  MPI_Datatype scattered;
  MPI_Type_create_indexed_block(count, 1, places.data(), MPI_CHAR, &scattered);
  MPI_Type_commit(&scattered);
  std::vector<char> data(static_cast<size_t>(count));
  const bool poor = rank == size - 1;
  if (poor) leave_room_for(size_t{4} << 20);
  const int result = MPI_Bcast(data.data(), poor ? 1 : count, poor ? scattered : MPI_CHAR, size - 1,
                               MPI_COMM_WORLD);
  const int later = MPI_Barrier(MPI_COMM_WORLD);
  if (later == MPI_SUCCESS) test::fail("a call after one that failed");
  tell_and_go(result == MPI_SUCCESS ? later : result);
}

// The last rank comes when the others have given up.
void come_late() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const bool last = rank == size - 1;
  if (last) sleep(4);
  const int result = MPI_Barrier(MPI_COMM_WORLD);
  // The others are in MPI meanwhile, and nowhere else.
  int token = 0;
  if (!last) MPI_Recv(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; last && i < size - 1; ++i) MPI_Send(&token, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
  tell_and_go(result);
}

void fork_and_go_on() {
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      // Sluice's descriptors must not be in what it starts; exit handlers must not hurt the parent.
      if (i == 0) std::exit(0);
      execlp("sh", "sh", "-c", "ls -l /proc/self/fd | grep -c socket >&2; exit 0", nullptr);
    }
    int status = 0;
    waitpid(child, &status, 0);
    test::check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child ends well");
    sum_up();
  }
}

int class_of(int result) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(result, &error_class);
  return error_class;
}

// The same class of error with Sluice and from MPI itself, and no success.
#define SAME(function, ...)                                                                       \
  {                                                                                               \
    const int here = class_of(MPI_##function(__VA_ARGS__));                                       \
    const int there = class_of(IN_MPI(MPI_##function)(__VA_ARGS__));                              \
    test::check(here == there && here != MPI_SUCCESS,                                             \
                "MPI_" #function "(" #__VA_ARGS__ "): class " + std::to_string(here) + ", not " + \
                    std::to_string(there));                                                       \
  }

void reduce_nonsense() {
  double in[64] = {}, out[64] = {};
  const std::vector<int> counts(static_cast<size_t>(size), 1), negative(counts.size(), -1);
  const MPI_Comm world = MPI_COMM_WORLD;
  SAME(Allreduce, in, out, -1, MPI_INT, MPI_SUM, world);
  SAME(Allreduce, in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, world);
  SAME(Allreduce, in, out, 1, MPI_INT, MPI_OP_NULL, world);
  SAME(Allreduce, in, out, 1, MPI_DOUBLE, MPI_BAND, world);
  SAME(Allreduce, in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL);
  SAME(Reduce, in, out, -1, MPI_INT, MPI_SUM, 0, world);
  SAME(Reduce, in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, 0, world);
  SAME(Reduce, in, out, 1, MPI_INT, MPI_OP_NULL, 0, world);
  SAME(Reduce, in, out, 1, MPI_DOUBLE, MPI_BXOR, 0, world);
  SAME(Reduce, in, out, 1, MPI_INT, MPI_SUM, size, world);
  SAME(Reduce, in, out, 1, MPI_INT, MPI_SUM, -5, world);
  SAME(Reduce, in, out, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_NULL);
  SAME(Reduce_scatter, in, out, negative.data(), MPI_INT, MPI_SUM, world);
  SAME(Reduce_scatter, in, out, counts.data(), MPI_DATATYPE_NULL, MPI_SUM, world);
  SAME(Reduce_scatter, in, out, counts.data(), MPI_INT, MPI_OP_NULL, world);
  SAME(Reduce_scatter, in, out, counts.data(), MPI_FLOAT, MPI_BOR, world);
  SAME(Reduce_scatter, in, out, counts.data(), MPI_INT, MPI_SUM, MPI_COMM_NULL);
  SAME(Reduce_scatter_block, in, out, -1, MPI_INT, MPI_SUM, world);
  SAME(Reduce_scatter_block, in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, world);
  SAME(Reduce_scatter_block, in, out, 1, MPI_INT, MPI_OP_NULL, world);
  SAME(Reduce_scatter_block, in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL);
}

// (Without what Open MPI 4.1.4 itself crashes on.)
void move_nonsense() {
  int in[64] = {}, out[64] = {};
  std::vector<int> counts(static_cast<size_t>(size), 1), negative(counts.size(), -1),
      places(counts);
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Datatype none = MPI_DATATYPE_NULL;
  const int *const n = counts.data(), *const less = negative.data(), *const at = places.data();
  SAME(Barrier, MPI_COMM_NULL);
  SAME(Bcast, in, -1, MPI_INT, 0, world);
  SAME(Bcast, in, 1, none, 0, world);
  SAME(Bcast, in, 1, MPI_INT, size, world);
  SAME(Bcast, in, 1, MPI_INT, -5, world);
  SAME(Bcast, in, 1, MPI_INT, 0, MPI_COMM_NULL);
  SAME(Allgather, in, -1, MPI_INT, out, 1, MPI_INT, world);
  SAME(Allgatherv, in, -1, MPI_INT, out, n, at, MPI_INT, world);
  SAME(Alltoall, in, -1, MPI_INT, out, 1, MPI_INT, world);
  SAME(Alltoall, in, 1, none, out, 1, MPI_INT, world);
  SAME(Alltoall, in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_NULL);
  SAME(Alltoallv, in, less, at, MPI_INT, out, n, at, MPI_INT, world);
  SAME(Alltoallv, in, n, at, none, out, n, at, MPI_INT, world);
  SAME(Alltoallv, in, n, at, MPI_INT, out, n, at, MPI_INT, MPI_COMM_NULL);
}

// MPI's own errors, class by class, though Sluice stands in for the function.
void call_with_nonsense() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  reduce_nonsense();
  move_nonsense();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  sum_up();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "late") come_late();
  sum_up();
  if (mode == "kill") kill_one(argv[2]);
  if (mode == "leave" && rank == size - 1) std::exit(0);
  if (mode == "abort" && rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 5);
  if (mode == "memory") run_out_of_memory();
  if (mode == "type") describe_without_memory();
  if (mode == "fork") fork_and_go_on();
  if (mode == "invalid") call_with_nonsense();
  sum_up();
  test::summarize("failures");
  MPI_Finalize();
}
