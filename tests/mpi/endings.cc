// SPDX-License-Identifier: BSD-3-Clause
//
// endings MODE: how programs end, and what they do just before.
//   callbacks   collectives inside MPI_Finalize, in delete callbacks of attributes
//   unfreed     communicators, types and operations that are never freed
//   around      MPI's own MPI_Finalize, past Sluice, as a profiler may call it
//   exit        no MPI_Finalize on any rank
//   leave       no MPI_Finalize on the last rank; the others wait for it
//   abort       MPI_Abort on the last rank while the others wait for it
//   operation   MPI_Abort inside a collective, from a user-defined operation
//   fork        children that exit, that start other programs, and that outlive a collective
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/mpi/harness.h"

namespace {

constexpr unsigned watchdog = 300;

using test::rank, test::size;

void sum_up(MPI_Comm comm, int count) {
  const std::vector<double> from(static_cast<size_t>(count), 1.0);
  std::vector<double> to(from.size());
  MPI_Allreduce(from.data(), to.data(), count, MPI_DOUBLE, MPI_SUM, comm);
  int all = 0;
  MPI_Comm_size(comm, &all);
  test::check(to.front() == all && to.back() == all, "a sum");
}

// Sizes for each kind of transfer through shared memory.
void use(MPI_Comm comm) {
  for (const int count : {1, 1000, 100000, 1 << 20}) sum_up(comm, count);
}

// A callback's argument: a communicator to use, and to free if the program made it.
struct Use {
  const char* whose;
  MPI_Comm comm;
  bool frees;
};
int called = 0;

int use_in_callback(MPI_Comm, int, void* value, void*) {
  auto* const what = static_cast<Use*>(value);
  int finalized = 0;
  MPI_Finalized(&finalized);
  ++called;
  if (!finalized) {
    use(what->comm);
    MPI_Barrier(what->comm);
    if (what->frees) MPI_Comm_free(&what->comm);
  }
  if (rank == 0) std::printf("called back for %s\n", what->whose);
  std::fflush(stdout);
  return MPI_SUCCESS;
}

void call_back(MPI_Comm holder, Use* what) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, use_in_callback, &key, nullptr);
  MPI_Comm_set_attr(holder, key, what);
  MPI_Comm_free_keyval(&key);
}

// Attributes set before and after Sluice's first collective; MPI deletes the last one first.
void set_callbacks() {
  static MPI_Comm copies[3];
  static Use uses[] = {{"MPI_COMM_SELF, early", MPI_COMM_WORLD, false},
                       {"MPI_COMM_WORLD, early", MPI_COMM_WORLD, false},
                       {"MPI_COMM_SELF, late", {}, true},
                       {"MPI_COMM_WORLD, late", {}, true},
                       {"a copy", MPI_COMM_WORLD, false},
                       {"MPI_COMM_SELF, a new one", {}, true}};
  call_back(MPI_COMM_SELF, &uses[0]);
  call_back(MPI_COMM_WORLD, &uses[1]);
  for (MPI_Comm& copy : copies) MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  use(MPI_COMM_WORLD);
  use(copies[0]);
  use(copies[1]);
  uses[2].comm = copies[0];
  uses[3].comm = copies[1];
  uses[5].comm = copies[2];  // no collective on it so far
  call_back(MPI_COMM_SELF, &uses[2]);
  call_back(MPI_COMM_WORLD, &uses[3]);
  call_back(MPI_COMM_SELF, &uses[5]);
  call_back(copies[0], &uses[4]);  // copies[0] is freed in the callback
}

void keep_right(void*, void*, int*, MPI_Datatype*) {}

void free_nothing() {
  for (int i = 0; i < 40; ++i) {
    MPI_Comm comm;
    i % 2 ? MPI_Comm_dup(MPI_COMM_WORLD, &comm)
          : MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    sum_up(comm, 1 + i * 1000);
    MPI_Datatype type;
    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    int data[6] = {};
    MPI_Bcast(data, 1, type, 0, comm);
    MPI_Op op;
    MPI_Op_create(keep_right, 1, &op);
    MPI_Allreduce(MPI_IN_PLACE, data, 1, type, op, comm);
  }
}

void abort_in_operation(void*, void*, int*, MPI_Datatype*) {
  if (rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 5);
}

void abort_in_collective() {
  MPI_Op op;
  MPI_Op_create(abort_in_operation, 1, &op);
  std::vector<double> from(1 << 20), to(from.size());
  for (;;) MPI_Allreduce(from.data(), to.data(), 1 << 20, MPI_DOUBLE, op, MPI_COMM_WORLD);
}

void end_well(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  test::check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child ends well");
}

void fork_and_go_on() {
  for (const std::string what : {"exit", "exec", "_exit", "stay"}) {
    const pid_t child = fork();
    if (child == 0) {
      if (what == "exit") std::exit(0);  // exit handlers in the child must not harm the parent
      if (what == "_exit") _exit(0);
      if (what == "stay") usleep(300000);
      if (what == "stay") std::exit(0);
      // The started program must not inherit Sluice's descriptors.
      execlp("sh", "sh", "-c", "! ls -l /proc/self/fd | grep -q sluice", nullptr);
      _exit(1);
    }
    if (what != "stay") end_well(child);
    use(MPI_COMM_WORLD);
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    use(copy);
    MPI_Comm_free(&copy);
    if (what == "stay") end_well(child);
  }
}

// MPI's own MPI_Finalize, while the last rank has not received the last message yet.
void finalize_around() {
  test::summarize("endings");
  std::vector<double> last(1000, rank == 0 ? 1.0 : 0.0);
  if (rank == size - 1) usleep(300000);
  MPI_Bcast(last.data(), 1000, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  test::check(last.front() == 1 && last.back() == 1, "the last message");
  IN_MPI(MPI_Finalize)();
}

}  // namespace

int main(int argc, char** argv) {
  alarm(watchdog);
  test::start(argc, argv);
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool last = rank == size - 1;
  if (mode == "fork") fork_and_go_on();
  if (mode == "callbacks") set_callbacks();
  use(MPI_COMM_WORLD);
  if (mode == "unfreed") free_nothing();
  if (mode == "leave" || mode == "abort") {
    if (last) usleep(300000);
    if (last && mode == "leave") std::exit(0);
    if (last) MPI_Abort(MPI_COMM_WORLD, 5);
    use(MPI_COMM_WORLD);
  }
  if (mode == "operation") abort_in_collective();
  if (mode == "around") {
    finalize_around();
    return 0;
  }
  test::summarize("endings");
  if (mode == "exit") std::exit(0);
  MPI_Finalize();
  if (mode == "callbacks" && rank == 0) std::printf("%d callbacks\n", called);
}
