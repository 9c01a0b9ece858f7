// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators that NCCL can't serve, or that end; and processes that do.
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>

#include "tests/cuda/offload_failures.h"

// What is missing is on one rank, or on all: the script knows.
void unable() {
  MPI_Comm comm = duplicate(false);
  expect_sums(comm, 40, false);
  MPI_Comm_free(&comm);
}

// In one vote the victim's memory is in a context that NCCL does not use; in the next all ranks'
// memory is on one device.
void reasons() {
  constexpr int count = 5000;
  MPI_Comm comm = duplicate(false);
  for (unsigned call = 1; call <= 64; ++call) {
    const bool is_shared = std::bit_width(call) % 2 == 0;
    const Kind own = rank == victim ? Kind::other_context : Kind::device;
    KindMemory data(is_shared ? Kind::other_device : own, count * sizeof(int));
    data.put(std::vector<int>(count, rank));
    MPI_Bcast(data.data(), count, MPI_INT, victim, comm);
    test::check(data.get<int>(count) == std::vector<int>(count, victim), "a broadcast");
  }
  MPI_Comm_free(&comm);
}

// The victim's device has no memory for what a reduce_scatter in place needs, and then it has.
void scratch() {
  constexpr int count = 5000;
  MPI_Comm comm = duplicate(true);
  const std::vector<int> ones(static_cast<size_t>(count) * static_cast<size_t>(size), 1);
  KindMemory data(Kind::device, ones.size() * sizeof(int));
  for (int call = 0; call < 9; ++call) {
    data.put(ones);
    const bool lacks = call < 6;
    if (rank == victim) CUDA(standin_fail)("device_alloc", lacks ? "1+" : "0");
    const int result =
        MPI_Reduce_scatter_block(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_SUM, comm);
    test::check(result == MPI_SUCCESS, text_of(result));
    test::check(data.get<int>(count) == std::vector<int>(count, size), "a scattered sum");
    test::check((test::algorithm_of(comm) == "nccl") != lacks, "by " + test::algorithm_of(comm));
  }
  MPI_Comm_free(&comm);
}

// MPI_Finalize comes while a group is started; or (how: uneven) when it is ready on some ranks, and
// not on the victim.
void finalize_early() {
  MPI_Comm comm = duplicate(false);
  while (!all(counted("nccl_communicators") > 0)) expect_sums(comm, 1, false);
  if (option == "uneven") expect_sums(comm, 200, false);
}

// Communicators that are freed, or not, when they have made so many calls.
void free_in_any_state() {
  for (int round = 0; round < 4; ++round) {
    for (int calls = 0; calls < 12; ++calls) {
      MPI_Comm comm = round == 1 && size > 2 ? permuted(4) : duplicate(false);
      for (int call = 0; call < calls; ++call) test::check(sum(comm).empty(), "a sum");
      if (round < 3) MPI_Comm_free(&comm);
    }
  }
  MPI_Comm comm = duplicate(true);
  MPI_Comm_free(&comm);
  test::check(counted("nccl_communicators") <= 2, "duplicates share what NCCL has");
}

// More groups of processes than SLUICE_NCCL_COMMS, which is 2.
void many() {
  const int orders = size > 2 ? 6 : 2;
  std::vector<MPI_Comm> comms;
  for (int which = 0; which < orders; ++which) {
    comms.push_back(permuted(which));
    if (which < 2) test::start_nccl(comms.back());
    expect_sums(comms.back(), 20, which < 2);
  }
  for (size_t i = 0; i < comms.size(); ++i) expect_sums(comms[i], 3, i < 2);
  test::check(counted("nccl_communicators") == 2, "two communicators of NCCL's");
}

namespace {

void give_hint(MPI_Comm comm, const char* value) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "sluice_nccl", value);
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
}

}  // namespace

// Off and on, while NCCL is not started, is being started, or serves.
void hints() {
  MPI_Comm comm = duplicate(false);
  for (int round = 0; round < 6; ++round) {
    give_hint(comm, "on");
    for (int call = 0; call < 2 * round; ++call) test::check(sum(comm).empty(), "a sum");
    if (round == 3) test::start_nccl(comm);
    give_hint(comm, "off");
    expect_sums(comm, 5, false);
  }
  give_hint(comm, "on");
  test::start_nccl(comm);
  expect_sums(comm, 5, true);
  MPI_Comm_free(&comm);
}

// Children that end, at once or by exit handlers, or start another program.
void forks() {
  MPI_Comm comm = duplicate(true);
  for (const std::string what : {"exit", "_exit", "exec", "stay"}) {
    const pid_t child = fork();
    if (child == 0) {
      if (what == "exit") std::exit(0);
      if (what == "_exit") _exit(0);
      if (what == "exec") execlp("true", "true", nullptr);
      usleep(200000);
      std::exit(what == "stay" ? 0 : 1);
    }
    expect_sums(comm, 3, true);
    int status = -1;
    waitpid(child, &status, 0);
    test::check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child ends well: " + what);
    expect_sums(comm, 3, true);
  }
  MPI_Comm_free(&comm);
}
