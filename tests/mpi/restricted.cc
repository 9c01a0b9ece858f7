// SPDX-License-Identifier: BSD-3-Clause
//
// restricted WHAT [RANK [FOLDER]]: between MPI_Init and the first collective, all ranks, or only
// RANK, lose something that Sluice asks the system for. All collectives must still be correct.
//   environment   clearenv()
//   random        getrandom fails, as under a seccomp filter
//   stat          stat fails, in the same way
//   accept4       accept4 fails, in the same way
//   accept        accept4 and accept fail, in the same way
//   root          FOLDER becomes the root directory: no /proc, /dev, /etc
//   errno         a signal comes after every second system call that fails, before its caller has
//                 read errno, and the handler leaves another value there
//   nothing       for comparison
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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
const std::vector<int> ways_to_accept = {
#ifdef SYS_accept
    SYS_accept,
#endif
    SYS_accept4};

using test::rank, test::size;

constexpr int errors_left[] = {ENOENT, ECONNRESET, EBADF, EPIPE};
volatile sig_atomic_t signals = 0;
bool disturbs = false;
long failed = 0;

void leave_errno(int) {
  signals = signals + 1;
  errno = errors_left[signals % 4];
}

// (MPI has threads of its own.)
ssize_t disturbed(ssize_t result) {
  if (result < 0 && disturbs && gettid() == getpid() && ++failed % 2 == 0) raise(SIGUSR1);
  return result;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
#define DISTURBED(type, name, parameters, arguments)         \
  type name parameters {                                     \
    static auto* const real = next<decltype(::name)>(#name); \
    return static_cast<type>(disturbed(real arguments));     \
  }
DISTURBED(ssize_t, recv, (int fd, void* to, size_t bytes, int flags), (fd, to, bytes, flags))
DISTURBED(ssize_t, send, (int fd, const void* from, size_t bytes, int flags),
          (fd, from, bytes, flags))
DISTURBED(ssize_t, recvmsg, (int fd, msghdr* message, int flags), (fd, message, flags))
DISTURBED(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags))
DISTURBED(int, connect, (int fd, const sockaddr* to, socklen_t bytes), (fd, to, bytes))
DISTURBED(int, accept4, (int fd, sockaddr* from, socklen_t* bytes, int flags),
          (fd, from, bytes, flags))
}
#pragma GCC visibility pop

namespace {

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
  if (what == "accept4") forbid({SYS_accept4}, rank % 2 == 0 ? EPERM : ENOSYS);
  if (what == "accept") forbid(ways_to_accept, EPERM);
  if (what == "errno") {
    signal(SIGUSR1, leave_errno);
    disturbs = true;
  }
  if (what == "root" && (chroot(folder) != 0 || chdir("/") != 0)) std::printf("no chroot here\n");
}

}  // namespace

int main(int argc, char** argv) {
  alarm(watchdog);
  test::start(argc, argv);
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
  if (disturbs) test::check(signals > 0, "a signal came");
  return test::finish("restricted");
}
