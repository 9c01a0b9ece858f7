// SPDX-License-Identifier: BSD-3-Clause
//
// threads: MPI_THREAD_MULTIPLE, several threads in collectives at once, each on communicators of
// its own, their first collectives and their last included, and one thread that passes messages.
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

constexpr int threads = 3;
constexpr int rounds = 100;

int rank = 0, size = 0;

// Returns what went wrong. (Checks are the main thread's.)
std::string work(MPI_Comm comm, int number) {
  for (int round = 0; round < rounds; ++round) {
    const int count = 1 + round * 37 % 5000;
    std::vector<double> from(static_cast<size_t>(count), rank + number + round), to(from.size());
    MPI_Allreduce(from.data(), to.data(), count, MPI_DOUBLE, MPI_SUM, comm);
    const double sum = size * (number + round) + size * (size - 1) / 2.0;
    if (to.front() != sum || to.back() != sum) return "allreduce";
    const int root = round % size;
    std::vector<int> data(static_cast<size_t>(count), rank == root ? round : -1);
    MPI_Bcast(data.data(), count, MPI_INT, root, comm);
    if (data.front() != round || data.back() != round) return "bcast";
    if (round % 10 != 0) continue;
    MPI_Comm copy;
    MPI_Comm_dup(comm, &copy);
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
  }
  return "";
}

std::string pass_messages() {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  std::vector<char> from(100000, static_cast<char>(rank)), to(from.size());
  for (int round = 0; round < rounds; ++round) {
    MPI_Sendrecv(from.data(), 100000, MPI_CHAR, next, 1, to.data(), 100000, MPI_CHAR, previous, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (to.back() != static_cast<char>(previous)) return "a message";
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (level != MPI_THREAD_MULTIPLE) {
    std::puts("this MPI has no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 77;
  }
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<std::string> wrong(threads + 1);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    const auto at = static_cast<size_t>(i);
    running.emplace_back([&, at, i] { wrong[at] = work(comms[at], i); });
  }
  running.emplace_back([&] { wrong[threads] = pass_messages(); });
  for (std::thread& thread : running) thread.join();
  for (const std::string& what : wrong) test::check(what.empty(), what + " went wrong in a thread");
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  test::summarize("threads");
  MPI_Finalize();
}
