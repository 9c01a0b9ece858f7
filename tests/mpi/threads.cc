// SPDX-License-Identifier: BSD-3-Clause
//
// threads [MODE] [--seed S] [--rounds N]. Without a mode: MPI_THREAD_MULTIPLE with several threads
// in collectives at once. Each thread has its own communicators, which other threads use on other
// ranks; first and last collectives included. One thread passes messages. "handlers": one thread
// sets error handlers and makes errors while another is in collectives. "funneled":
// MPI_THREAD_FUNNELED, but two threads make collectives, each on a communicator that already had
// one. Programs do this, and MPI libraries survive it.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

constexpr int threads = 4;
constexpr int comms_of_each = 2;

using test::rank, test::size;
int rounds = 60;

// A random delay, so that threads and ranks come at different times.
void linger(test::Random& random) {
  if (random.chance(8)) usleep(static_cast<useconds_t>(random.below(500)));
}

std::string reduce(MPI_Comm comm, int number, int count) {
  std::vector<double> from(static_cast<size_t>(count), rank + number), to(from.size());
  const double sum = size * number + size * (size - 1) / 2.0;
  MPI_Allreduce(from.data(), to.data(), count, MPI_DOUBLE, MPI_SUM, comm);
  if (to.front() != sum || to.back() != sum) return "allreduce";
  const int root = number % size;
  MPI_Reduce(rank == root ? MPI_IN_PLACE : from.data(), from.data(), count, MPI_DOUBLE, MPI_SUM,
             root, comm);
  return rank != root || (from.front() == sum && from.back() == sum) ? "" : "reduce";
}

std::string scan(MPI_Comm comm, int number, int count) {
  std::vector<double> from(static_cast<size_t>(count), rank + number), to(from);
  const double before = rank * number + rank * (rank - 1) / 2.0, own = rank + number;
  MPI_Scan(from.data(), to.data(), count, MPI_DOUBLE, MPI_SUM, comm);
  if (to.front() != before + own || to.back() != before + own) return "scan";
  MPI_Exscan(MPI_IN_PLACE, from.data(), count, MPI_DOUBLE, MPI_SUM, comm);
  const double expected = rank == 0 ? own : before;
  return from.front() == expected && from.back() == expected ? "" : "exscan";
}

std::string move(MPI_Comm comm, int number, int count) {
  const int root = number % size;
  std::vector<int> data(static_cast<size_t>(count), rank == root ? number : -1);
  MPI_Bcast(data.data(), count, MPI_INT, root, comm);
  if (data.front() != number || data.back() != number) return "bcast";
  std::vector<int> all(data.size() * static_cast<size_t>(size)), back(all.size());
  data.assign(data.size(), number + rank);
  MPI_Allgather(data.data(), count, MPI_INT, all.data(), count, MPI_INT, comm);
  if (all.front() != number || all.back() != number + size - 1) return "allgather";
  MPI_Alltoall(all.data(), count, MPI_INT, back.data(), count, MPI_INT, comm);
  return back.front() == number + rank && back.back() == number + rank ? "" : "alltoall";
}

// What the root gathers, it scatters again.
std::string move_by_root(MPI_Comm comm, int number, int count) {
  const int root = number % size;
  const auto ranks = static_cast<size_t>(size), length = static_cast<size_t>(count);
  std::vector<int> own(length, number + rank), all(rank == root ? ranks * length : 0);
  MPI_Gather(own.data(), count, MPI_INT, all.data(), count, MPI_INT, root, comm);
  if (rank == root && (all.front() != number || all.back() != number + size - 1)) return "gather";
  own.assign(length, -1);
  MPI_Scatter(all.data(), count, MPI_INT, own.data(), count, MPI_INT, root, comm);
  if (own.front() != number + rank || own.back() != number + rank) return "scatter";
  std::vector<int> counts(ranks, count), places(ranks);
  for (size_t i = 0; i < ranks; ++i) places[i] = (size - 1 - static_cast<int>(i)) * count;
  const bool is_root = rank == root;
  const int *n = is_root ? counts.data() : nullptr, *at = is_root ? places.data() : nullptr;
  MPI_Gatherv(own.data(), count, MPI_INT, all.data(), n, at, MPI_INT, root, comm);
  if (is_root && (all.front() != number + size - 1 || all.back() != number)) return "gatherv";
  own.assign(length, -1);
  MPI_Scatterv(all.data(), n, at, MPI_INT, own.data(), count, MPI_INT, root, comm);
  return own.front() == number + rank && own.back() == number + rank ? "" : "scatterv";
}

// Returns what went wrong. (Only the main thread may call test::check.)
std::string work(const std::vector<MPI_Comm>& comms, uint64_t seed, bool with_new_ones = true) {
  test::Random own(seed);
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < comms.size(); ++i) {
      const int number = round + static_cast<int>(i), count = 1 + number * number * 37 % 20000;
      linger(own);
      std::string wrong = reduce(comms[i], number, count);
      if (wrong.empty()) wrong = scan(comms[i], number, count);
      if (wrong.empty()) wrong = move(comms[i], number, count);
      if (wrong.empty()) wrong = move_by_root(comms[i], number, count);
      if (!wrong.empty()) return wrong;
      if (round % 10 != 0 || !with_new_ones) continue;
      MPI_Comm copy;
      MPI_Comm_dup(comms[i], &copy);
      MPI_Barrier(copy);
      MPI_Comm_free(&copy);
    }
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

std::atomic<int> heard{0};
void hear(MPI_Comm*, int*, ...) { ++heard; }

void keep_right(void*, void*, int*, MPI_Datatype*) {}

// Makes calls for which Sluice must query MPI: operations, new communicators, new types.
void use_new_things(MPI_Comm comm, const std::atomic<bool>& over) {
  MPI_Op op;
  MPI_Op_create(keep_right, 1, &op);
  for (int i = 0; !over; ++i) {
    int from[8] = {}, to[8];
    MPI_Allreduce(from, to, 1, MPI_INT, op, comm);
    if (i % 8 != 0) continue;
    MPI_Comm copy;
    MPI_Datatype type;
    MPI_Comm_dup(comm, &copy);
    MPI_Type_vector(2, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int use = 0; use < 1 + i / 8 % 3; ++use) MPI_Bcast(to, 1, type, 0, copy);
    MPI_Type_free(&type);
    MPI_Comm_free(&copy);
  }
  MPI_Op_free(&op);
}

// A communicator must have the handler that was set, and an error must reach that handler.
void watch_handler(MPI_Comm comm, MPI_Errhandler handler, int calls) {
  MPI_Comm_set_errhandler(comm, handler);
  heard = 0;
  MPI_Send(nullptr, -1, MPI_INT, rank, 1, comm);
  MPI_Errhandler found;
  MPI_Comm_get_errhandler(comm, &found);
  test::check(heard == calls, std::to_string(heard) + " calls of an error handler");
  test::check(found == handler, "another error handler than was set");
  MPI_Errhandler_free(&found);
}

// Lets both threads run at once, even if mpirun bound the process to one processor.
void run_anywhere() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (size_t i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  sched_setaffinity(0, sizeof all, &all);
}

void run_handlers() {
  run_anywhere();
  MPI_Comm alone;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_SELF, &alone);
  MPI_Comm_create_errhandler(hear, &handler);
  std::atomic<bool> over{false};
  std::thread other([&] { use_new_things(alone, over); });
  for (const double end = MPI_Wtime() + 2; MPI_Wtime() < end;) {
    for (const MPI_Comm comm : {MPI_COMM_SELF, MPI_COMM_WORLD}) {
      watch_handler(comm, handler, 1);
      watch_handler(comm, MPI_ERRORS_RETURN, 0);
    }
  }
  over = true;
  other.join();
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&alone);
}

void run_funneled(uint64_t seed) {
  run_anywhere();
  std::vector<MPI_Comm> comms(2);
  for (MPI_Comm& comm : comms) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
  }
  std::string wrong[2];
  const auto run = [&](size_t i) {
    const uint64_t own = seed + i * 64 + static_cast<uint64_t>(rank);
    for (int time = 0; time < 4 && wrong[i].empty(); ++time) {
      wrong[i] = work({comms[i]}, own, false);
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  for (const std::string& what : wrong) test::check(what.empty(), what + " went wrong in a thread");
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const int wanted = mode == "funneled" ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE;
  const int level = test::start(argc, argv, wanted);
  const test::Options options(argc, argv);
  rounds = static_cast<int>(options.number("rounds", 60));
  if (level < wanted) {
    std::puts("this MPI has no such threads");
    MPI_Finalize();
    return 77;
  }
  alarm(240);
  if (mode == "handlers" || mode == "funneled") {
    if (mode == "handlers") {
      run_handlers();
    } else {
      run_funneled(test::agree_on_seed(options));
    }
    return test::finish("threads");
  }
  const uint64_t seed = test::agree_on_seed(options);
  std::vector<MPI_Comm> comms(threads * comms_of_each);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<std::string> wrong(threads + 1);
  std::vector<std::thread> running;
  for (size_t i = 0; i < threads; ++i) {
    const size_t first = (i + static_cast<size_t>(rank)) % threads * comms_of_each;
    const std::vector<MPI_Comm> mine(&comms[first], &comms[first] + comms_of_each);
    running.emplace_back(
        [&, i, mine] { wrong[i] = work(mine, seed + i * 64 + static_cast<size_t>(rank)); });
  }
  running.emplace_back([&] { wrong[threads] = pass_messages(); });
  for (std::thread& thread : running) thread.join();
  for (const std::string& what : wrong) test::check(what.empty(), what + " went wrong in a thread");
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  return test::finish("threads");
}
