// SPDX-License-Identifier: BSD-3-Clause
//
// failures kill FILE|strike FILE SEED|memory|type|late: the last rank is killed while the others
// wait for it, or any at any moment; or has no memory; or comes when the others have given up.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
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

int account_of_death = -1;

extern "C" void note_and_die(int) {
  const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  if (write(account_of_death, &now, sizeof now) == ssize_t{sizeof now}) std::raise(SIGKILL);
}

// A collective of any kind, from barriers to what takes longer than a processor's turn.
int call_anything(test::Random& random, std::vector<double>& from, std::vector<double>& to) {
  const int root = static_cast<int>(random.below(static_cast<size_t>(size)));
  const int n = 1 << random.below(20), share = n / size;
  switch (random.below(5)) {
    case 0:
      return MPI_Barrier(MPI_COMM_WORLD);
    case 1:
      return MPI_Bcast(to.data(), n, MPI_DOUBLE, root, MPI_COMM_WORLD);
    case 2:
      return MPI_Reduce(from.data(), to.data(), n, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    case 3:
      return MPI_Alltoall(from.data(), share, MPI_DOUBLE, to.data(), share, MPI_DOUBLE,
                          MPI_COMM_WORLD);
    default:
      return MPI_Allreduce(from.data(), to.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

// One rank is killed at any moment of a program of collectives. The others tell how long after that
// they learned it, and what.
void strike_one(const std::string& account, uint64_t seed) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  test::Random random(seed);
  const int victim = static_cast<int>(random.below(static_cast<size_t>(size)));
  const auto moment = static_cast<suseconds_t>(1000 + random.below(200000));
  account_of_death = open((account + ".death").c_str(), O_CREAT | O_RDWR, 0600);
  if (rank == victim) {
    std::signal(SIGALRM, note_and_die);
    const itimerval timer{{0, 0}, {0, moment}};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  std::vector<double> from(1 << 20, 1.0), to(from.size());
  int result = MPI_SUCCESS;
  while (result == MPI_SUCCESS) result = call_anything(random, from, to);
  const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  double death = 0;
  if (pread(account_of_death, &death, sizeof death, 0) != ssize_t{sizeof death}) death = 0;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  FILE* file = std::fopen(account.c_str(), "a");
  std::fprintf(file, "victim %d, %.3f s: %s\n", victim, now - death, text);
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

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "late") come_late();
  sum_up();
  if (mode == "kill") kill_one(argv[2]);
  if (mode == "strike") strike_one(argv[2], std::strtoull(argv[3], nullptr, 0));
  if (mode == "memory") run_out_of_memory();
  if (mode == "type") describe_without_memory();
  sum_up();
  test::summarize("failures");
  MPI_Finalize();
}
