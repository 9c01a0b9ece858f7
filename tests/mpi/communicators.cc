// SPDX-License-Identifier: BSD-3-Clause
//
// communicators [--rounds N] [--alive N] [--worlds N]: Sluice's state on communicators and
// datatypes. Thousands are made and freed, and their handles are reused. Covers communicators of
// every construction (with --worlds also spanning two worlds), intercommunicators, and collectives
// from callbacks and error handlers, also inside MPI_Finalize.
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

constexpr unsigned spawn_limit = 15;  // seconds

int open_descriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

// One collective of each kind, with results that every rank knows.
void use(MPI_Comm comm, const char* what) {
  int rank = 0, size = 0, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  test::check(sum == size * (size + 1) / 2, std::string("allreduce on ") + what);
  int root = rank == size - 1 ? 4711 : 0;
  MPI_Bcast(&root, 1, MPI_INT, size - 1, comm);
  test::check(root == 4711, std::string("bcast on ") + what);
  std::vector<int> ranks(static_cast<size_t>(size));
  MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, comm);
  test::check(std::ranges::is_sorted(ranks) && ranks.back() == size - 1,
              std::string("allgather on ") + what);
  int before = 0;
  MPI_Exscan(&mine, &before, 1, MPI_INT, MPI_SUM, comm);
  test::check(before == rank * mine / 2, std::string("exscan on ") + what);
  MPI_Scan(MPI_IN_PLACE, &before, 1, MPI_INT, MPI_MAX, comm);
  test::check(before == rank * mine / 2, std::string("scan on ") + what);
  int number = -1;
  MPI_Scatter(ranks.data(), 1, MPI_INT, &number, 1, MPI_INT, size - 1, comm);
  test::check(number == rank, std::string("scatter on ") + what);
  std::vector<int> got(ranks.size(), -1);
  MPI_Gather(&number, 1, MPI_INT, got.data(), 1, MPI_INT, 0, comm);
  test::check(got == (rank == 0 ? ranks : std::vector<int>(ranks.size(), -1)),
              std::string("gather on ") + what);
  MPI_Barrier(comm);
}

MPI_Comm make_of_group() {
  MPI_Group all, some;
  MPI_Comm made = MPI_COMM_NULL;
  std::vector<int> ranks;
  for (int i = test::size - 1; i >= 0; i -= 2) ranks.push_back(i);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  MPI_Comm_create(MPI_COMM_WORLD, some, &made);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return made;
}

void make_and_free() {
  MPI_Comm copy, half, grouped = make_of_group();
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split(copy, test::rank % 2, -test::rank, &half);
  use(copy, "a duplicate");
  use(half, "a half");
  if (grouped != MPI_COMM_NULL) {
    use(grouped, "a group");
    MPI_Comm_free(&grouped);
  }
  MPI_Comm_free(&copy);
  use(half, "a half of what was freed");
  MPI_Comm_free(&half);
}

void churn(uint64_t rounds) {
  for (int i = 0; i < 20; ++i) make_and_free();  // makes all connections that will be made
  const int descriptors = open_descriptors();
  const size_t memory = test::resident_bytes() / 1024;
  for (uint64_t i = 0; i < rounds; ++i) make_and_free();
  test::check(open_descriptors() <= descriptors, "no descriptor is left behind");
  const size_t growth = std::max(test::resident_bytes() / 1024, memory) - memory;
  test::check(growth < 4096, "memory grew by " + std::to_string(growth) + " KB");
}

// Many at a time, in use by turns: they share what connects their ranks. (Shared memory grows by a
// segment for dozens of them.)
void use_many(uint64_t count) {
  const int descriptors = open_descriptors();
  std::vector<MPI_Comm> made(count);
  for (MPI_Comm& each : made) {
    MPI_Comm_dup(MPI_COMM_WORLD, &each);
    use(each, "one of many");
  }
  for (const MPI_Comm each : made) use(each, "one of many, again");
  const int more = open_descriptors() - descriptors;
  test::check(more <= static_cast<int>(count / 16), std::to_string(more) + " descriptors for " +
                                                        std::to_string(count) + " communicators");
  for (MPI_Comm& each : made) MPI_Comm_free(&each);
}

// Communicators of all other constructions.
void use_all_kinds() {
  const int grid[] = {test::size, 1}, periods[] = {1, 0};
  MPI_Comm made;
  MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 1, &made);
  use(made, "a grid");
  MPI_Comm row;
  const int remaining[] = {1, 0};
  MPI_Cart_sub(made, remaining, &row);
  use(row, "a grid's row");
  MPI_Comm_free(&row);
  MPI_Comm_free(&made);

  std::vector<int> index, edges;
  for (int i = 0; i < test::size; ++i) {
    edges.push_back((i + 1) % test::size);
    index.push_back(i + 1);
  }
  MPI_Graph_create(MPI_COMM_WORLD, test::size, index.data(), edges.data(), 0, &made);
  use(made, "a graph");
  MPI_Comm_free(&made);
  const int next = (test::rank + 1) % test::size, last = (test::rank + test::size - 1) % test::size;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &last, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &made);
  use(made, "a distributed graph");
  MPI_Comm_free(&made);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
  use(made, "a host");
  MPI_Comm_free(&made);
  MPI_Request request;
  MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  use(made, "a duplicate that took its time");
  MPI_Comm_free(&made);
}

// Communicators made by their members only (MPI_Comm_create_group). Each rank but the first and
// last is in two of them and alternates between their collectives.
void overlap() {
  MPI_Group all;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm pairs[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
  for (int first = 0; first + 1 < test::size; ++first) {
    if (test::rank != first && test::rank != first + 1) continue;
    const int ranks[] = {first, first + 1};
    MPI_Group two;
    MPI_Group_incl(all, 2, ranks, &two);
    MPI_Comm_create_group(MPI_COMM_WORLD, two, first, &pairs[first % 2]);
    MPI_Group_free(&two);
  }
  MPI_Group_free(&all);
  for (int i = 0; i < 10; ++i) {
    for (const MPI_Comm pair : pairs) {
      if (pair != MPI_COMM_NULL) use(pair, "one of two overlapping pairs");
    }
  }
  for (MPI_Comm& pair : pairs) {
    if (pair != MPI_COMM_NULL) MPI_Comm_free(&pair);
  }
}

// Joins another world. MPI runs collectives on the intercommunicator, Sluice on the merged one.
void meet(MPI_Comm between, bool high) {
  int one = 1, sum = 0, there = 0;
  MPI_Comm_remote_size(between, &there);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, between);
  test::check(sum == there, "allreduce between two worlds");
  MPI_Comm merged;
  MPI_Intercomm_merge(between, high, &merged);
  use(merged, "two worlds merged");
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&between);
}

// Sometimes Open MPI 4's mpirun loses a child's first message, and all ranks wait forever.
void give_up_spawning(int) {
  constexpr char words[] = "MPI itself did not spawn\n";
  (void)!write(STDERR_FILENO, words, sizeof(words) - 1);
  _exit(1);
}

// Makes spawned processes preload Sluice. (Open MPI 5 does not pass mpirun's -x on to them.)
MPI_Info with_preload() {
  const char* const preload = getenv("LD_PRELOAD");
  if (!preload) return MPI_INFO_NULL;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "env", (std::string("LD_PRELOAD=") + preload).c_str());
  return info;
}

void spawn(char* program) {
  MPI_Comm children;
  char word[] = "child";
  char* words[] = {word, nullptr};
  MPI_Info info = with_preload();
  alarm(spawn_limit);
  MPI_Comm_spawn(program, words, 2, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  alarm(0);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  meet(children, false);
}

// Spawns worlds that finish one after the other. What the first ones opened may stay open.
void spawn_many(char* program, uint64_t times) {
  constexpr uint64_t first = 4;
  constexpr int lingering = 4;  // descriptors of worlds that have just finished
  int before = 0;
  for (uint64_t i = 0; i < times; ++i) {
    spawn(program);
    if (i + 1 == first) before = open_descriptors();
  }
  const int after = open_descriptors();
  test::check(times <= first || after <= before + lingering,
              "descriptors of worlds that have finished: " + std::to_string(after) + " for " +
                  std::to_string(before));
}

// Even ranks accept, odd ranks connect.
void connect() {
  if (test::size < 2) return;
  MPI_Comm half, between;
  MPI_Comm_split(MPI_COMM_WORLD, test::rank % 2, test::rank, &half);
  char port[MPI_MAX_PORT_NAME] = "";
  if (test::rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (test::rank % 2 == 0) {
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &between);
  } else {
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &between);
  }
  meet(between, test::rank % 2);
  if (test::rank == 0) MPI_Close_port(port);
  MPI_Comm_free(&half);
}

// So often that trials have an outcome.
void sum_often() {
  for (int call = 0; call < 200; ++call) {
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    test::check(sum == test::size, "one of many sums");
  }
}

int be_spawned() {
  MPI_Comm parents;
  MPI_Comm_get_parent(&parents);
  use(MPI_COMM_WORLD, "the children's world");
  sum_often();
  meet(parents, true);
  MPI_Finalize();
  return 0;
}

// Types with other layouts reuse the handles of freed types.
void reuse_datatypes() {
  for (int stride = 1; stride < 200; ++stride) {
    const int length = 1 + stride % 3;
    MPI_Datatype type;
    MPI_Type_vector(4, 1, stride % 5 + 1, MPI_INT, &type);
    MPI_Type_commit(&type);
    std::vector<int> data(64, -1);
    const int step = stride % 5 + 1;
    for (int i = 0; test::rank == 0 && i < 4; ++i) data[static_cast<size_t>(i * step)] = i;
    MPI_Bcast(data.data(), 1, type, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 64; ++i) {
      const int expected = i % step == 0 && i / step < 4 ? i / step : -1;
      test::check(data[static_cast<size_t>(i)] == expected, "a type under a used handle");
    }
    MPI_Type_free(&type);
    MPI_Type_contiguous(length, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    std::vector<double> numbers(4, test::rank);
    MPI_Bcast(numbers.data(), 1, type, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i) {
      test::check(numbers[static_cast<size_t>(i)] == (i < length ? 0 : test::rank), "and the next");
    }
    MPI_Type_free(&type);
  }
}

void bridge() {
  if (test::size < 2) return;
  MPI_Comm half, between;
  const int side = test::rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, test::rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 7, &between);
  int mine = side + 1, sum = 0, there = 0;
  MPI_Comm_remote_size(between, &there);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, between);
  test::check(sum == there * (2 - side), "allreduce over an intercommunicator");
  int data = test::rank == 0 ? 99 : 0;
  const int root = side == 1 ? 0 : test::rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(&data, 1, MPI_INT, root, between);
  test::check(side == 0 || data == 99, "bcast over an intercommunicator");
  MPI_Barrier(between);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

int use_at_the_end(MPI_Comm comm, int, void*, void*) {
  use(comm, "what a callback is told of that is being freed");
  return MPI_SUCCESS;
}

// On some ranks, the program's attribute is set before Sluice's attribute, on others after it. MPI
// calls the callback of the youngest attribute first. The next communicator gets the same handle,
// with its ranks in another order.
void use_while_freeing() {
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, use_at_the_end, &keyval, nullptr);
  for (int round = 0; round < 12; ++round) {
    MPI_Comm copy, turned;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    const bool early = round % 3 == 0 ? test::rank == 0 : round % 3 == 1;
    if (early) MPI_Comm_set_attr(copy, keyval, nullptr);
    if (round > 2) use(copy, "a duplicate with an attribute");
    if (!early) MPI_Comm_set_attr(copy, keyval, nullptr);
    round % 2 == 0 ? MPI_Comm_free(&copy) : MPI_Comm_disconnect(&copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -test::rank, &turned);
    use(turned, "the world the other way round");
    MPI_Comm_free(&turned);
  }
  MPI_Comm_free_keyval(&keyval);
}

// Called last, by MPI_Finalize. Libraries do collectives in such callbacks.
int called_back = 0;
int at_the_end(MPI_Comm, int, void*, void*) {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  called_back = sum == test::size ? 1 : -1;
  return MPI_SUCCESS;
}

int handled = 0;

void use_again(MPI_Comm* comm, int*, ...) {
  ++handled;
  use(*comm, "a communicator in whose error handler this is");
}

// Two calls of a communicator exist at once: one that MPI finds invalid, and those that its error
// handler makes on all ranks.
void use_in_handlers() {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(use_again, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  for (int round = 1; round <= 3; ++round) {
    int data = 0;
    const int result = MPI_Bcast(&data, 1, MPI_INT, test::size, comm);
    test::check(result != MPI_SUCCESS, "a broadcast without a root");
    test::check(handled == round, "the error handler was called once");
    use(comm, "a communicator whose error handler has used it");
  }
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  if (argc > 1 && std::string(argv[1]) == "child") return be_spawned();
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &keyval, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
  use(MPI_COMM_WORLD, "the world");
  use(MPI_COMM_SELF, "itself");
  churn(options.number("rounds", 300));
  use_many(options.number("alive", 40));
  reuse_datatypes();
  use_while_freeing();
  bridge();
  use_all_kinds();
  overlap();
  use_in_handlers();
  if (const uint64_t worlds = options.number("worlds", 0)) {
    std::signal(SIGALRM, give_up_spawning);
    spawn_many(argv[0], worlds);
    connect();
  }
  MPI_Comm never_freed;
  MPI_Comm_dup(MPI_COMM_WORLD, &never_freed);
  use(never_freed, "a communicator that is never freed");
  test::finish("communicators");
  if (called_back == 1) return 0;
  std::fprintf(stderr, "FAILED on rank %d: a collective inside MPI_Finalize\n", test::rank);
  return 1;
}
