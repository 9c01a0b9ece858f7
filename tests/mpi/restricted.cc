// SPDX-License-Identifier: BSD-3-Clause
//
// restricted WHAT [RANK [FOLDER]]: between MPI_Init and the first collective, all ranks, or only
// RANK, lose something that Sluice asks the system for. All collectives must still be correct.
//   environment   clearenv()
//   random        getrandom fails, as under a seccomp filter
//   stat          stat fails, in the same way
//   root          FOLDER becomes the root directory: no /proc, /dev, /etc
//   nothing       for comparison
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/mpi/harness.h"

namespace {

constexpr unsigned watchdog = 60;

const std::vector<int> ways_to_stat = {
#ifdef SYS_stat
    SYS_stat,
#endif
    SYS_newfstatat, SYS_statx};

int rank = 0, size = 0;

void add(void* left, void* right, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(right)[i] += static_cast<int*>(left)[i];
}

// Uses shared memory, if available, and a plan over connections between all pairs.
void use(MPI_Comm comm) {
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  for (const MPI_Op each : {MPI_SUM, op}) {
    const std::vector<int> from(10000, 1);
    std::vector<int> to(from.size());
    MPI_Allreduce(from.data(), to.data(), static_cast<int>(to.size()), MPI_INT, each, comm);
    test::check(to.front() == size && to.back() == size, "a sum");
  }
  MPI_Op_free(&op);
  const std::vector<int> from(static_cast<size_t>(size), rank);
  std::vector<int> to(from.size());
  MPI_Alltoall(from.data(), 1, MPI_INT, to.data(), 1, MPI_INT, comm);
  for (int i = 0; i < size; ++i) test::check(to[static_cast<size_t>(i)] == i, "an exchange");
}

// From now on these system calls fail with this error.
void forbid(const std::vector<int>& calls, int error) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  const bool done = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
  if (!done) std::printf("no filter of system calls here\n");
}

void deprive(const std::string& what, const char* folder) {
  if (what == "environment") clearenv();
  if (what == "random") forbid({SYS_getrandom}, rank % 2 == 0 ? EPERM : ENOSYS);
  if (what == "stat") forbid(ways_to_stat, EACCES);
  if (what == "root" && (chroot(folder) != 0 || chdir("/") != 0)) std::printf("no chroot here\n");
}

}  // namespace

int main(int argc, char** argv) {
  alarm(watchdog);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // Let MPI make its own connections first.
  std::vector<int> from(static_cast<size_t>(size)), to(from.size());
  IN_MPI(MPI_Alltoall)(from.data(), 1, MPI_INT, to.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const bool here = argc < 3 || std::stoi(argv[2]) < 0 || std::stoi(argv[2]) == rank;
  if (argc > 1 && here) deprive(argv[1], argc > 3 ? argv[3] : nullptr);
  use(MPI_COMM_WORLD);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  use(copy);
  MPI_Comm_free(&copy);
  test::summarize("restricted");
  MPI_Finalize();
}
