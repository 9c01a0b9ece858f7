// SPDX-License-Identifier: BSD-3-Clause
//
// progress: programs that are correct only if MPI progresses while a rank waits in a collective. A
// pending message needs this rank's MPI library, which runs only if the waiting rank calls it. Each
// pattern runs on a communicator with a team, and on a new one, where set-up also waits.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

constexpr int big = 8 << 20;
constexpr int many = 20000;
constexpr int small = 256;
constexpr unsigned watchdog = 60;  // seconds per pattern

struct Place {
  MPI_Comm comm;
  int rank;
};

void isend_then_barrier(Place at) {
  std::vector<char> data(big, static_cast<char>(at.rank));
  if (at.rank == 0) {
    MPI_Request request;
    MPI_Isend(data.data(), big, MPI_CHAR, 1, 0, at.comm, &request);
    MPI_Barrier(at.comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(data.data(), big, MPI_CHAR, 0, 0, at.comm, MPI_STATUS_IGNORE);
    test::check(data.back() == 0, "a message arrived");
    MPI_Barrier(at.comm);
  }
}

template <int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm)>
void irecv_then_barrier(Place at) {
  std::vector<char> data(big, static_cast<char>(at.rank));
  if (at.rank == 0) {
    MPI_Request request;
    MPI_Irecv(data.data(), big, MPI_CHAR, 1, 0, at.comm, &request);
    MPI_Barrier(at.comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    test::check(data.back() == 1, "a message arrived");
  } else {
    send(data.data(), big, MPI_CHAR, 0, 0, at.comm);
    MPI_Barrier(at.comm);
  }
}

void iallreduce_then_barrier(Place at) {
  std::vector<double> from(big / 8, 1.0), to(big / 8);
  MPI_Request request;
  MPI_Iallreduce(from.data(), to.data(), big / 8, MPI_DOUBLE, MPI_SUM, at.comm, &request);
  if (at.rank == 0) {
    MPI_Barrier(at.comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(at.comm);
  }
  test::check(to.back() == 2.0, "a reduction arrived");
}

void many_isends_then_barrier(Place at) {
  std::vector<char> data(small);
  if (at.rank == 0) {
    std::vector<MPI_Request> requests(many);
    for (MPI_Request& request : requests) {
      MPI_Isend(data.data(), small, MPI_CHAR, 1, 0, at.comm, &request);
    }
    MPI_Barrier(at.comm);
    MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE);
  } else {
    for (int i = 0; i < many; ++i) {
      MPI_Recv(data.data(), small, MPI_CHAR, 0, 0, at.comm, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(at.comm);
  }
}

// With some transports, a put completes only while the target is in MPI.
void put_during_barrier(Place at) {
  char* data = nullptr;
  MPI_Win window;
  MPI_Win_allocate(big, 1, MPI_INFO_NULL, at.comm, &data, &window);
  std::memset(data, at.rank, big);
  MPI_Barrier(at.comm);
  if (at.rank == 1) {
    const std::vector<char> from(big, 7);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Put(from.data(), big, MPI_CHAR, 0, 0, big, MPI_CHAR, window);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(at.comm);
  MPI_Win_lock(MPI_LOCK_SHARED, at.rank, 0, window);
  test::check(data[big - 1] == (at.rank == 0 ? 7 : 1), "a put arrived");
  MPI_Win_unlock(at.rank, window);
  MPI_Win_free(&window);
}

struct Pattern {
  const char* name;
  void (*run)(Place at);
};

constexpr Pattern patterns[] = {
    {"Isend, Barrier / Recv, Barrier", isend_then_barrier},
    {"Irecv, Barrier / Send, Barrier", irecv_then_barrier<MPI_Send>},
    {"Irecv, Barrier / Ssend, Barrier", irecv_then_barrier<MPI_Ssend>},
    {"Iallreduce pending, Barrier", iallreduce_then_barrier},
    {"20000 Isends, Barrier", many_isends_then_barrier},
    {"Barrier / Win_lock, Put, Barrier", put_during_barrier},
};

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  test::check(test::size == 2, "two ranks");
  MPI_Barrier(MPI_COMM_WORLD);
  for (const Pattern& pattern : patterns) {
    if (test::rank == 0) std::printf("%s\n", pattern.name);
    std::fflush(stdout);
    alarm(watchdog);
    MPI_Comm fresh;
    MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
    pattern.run({MPI_COMM_WORLD, test::rank});
    pattern.run({fresh, test::rank});
    MPI_Comm_free(&fresh);
    alarm(0);
    test::check(true, pattern.name);
  }
  return test::finish("progress");
}
