// SPDX-License-Identifier: BSD-3-Clause
//
// descriptors closed|searched|limited [RANK]: what programs do with descriptors and files, on all
// ranks or only on RANK.
//   closed     descriptors 0 to 2 are closed before the first collective, written to, and reused
//   searched   each open file is opened again, its descriptor duplicated, and both are closed
//   limited    files may not grow (RLIMIT_FSIZE), from before the first collective on
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/mpi/harness.h"

namespace {

constexpr unsigned watchdog = 60;

using test::rank, test::size;

void add(void* left, void* right, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(right)[i] += static_cast<int*>(left)[i];
}

// Uses shared memory, and a plan over connections.
void use(MPI_Comm comm) {
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  for (const MPI_Op each : {MPI_SUM, op}) {
    const std::vector<int> from(32768, 1);
    std::vector<int> to(from.size());
    MPI_Allreduce(from.data(), to.data(), static_cast<int>(to.size()), MPI_INT, each, comm);
    test::check(to.front() == size && to.back() == size, "a sum");
  }
  MPI_Op_free(&op);
}

// Sluice must open its files at other numbers: a write to the closed descriptors must fail, and the
// program may reuse them.
void close_standard(bool here) {
  const int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 50);
  const int errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 50);
  for (int fd = 0; here && fd <= 2; ++fd) close(fd);
  use(MPI_COMM_WORLD);
  for (int fd = 0; here && fd <= 2; ++fd) {
    test::check(write(fd, "x", 1) < 0 && errno == EBADF, "nothing is behind " + std::to_string(fd));
  }
  const int nothing = open("/dev/null", O_RDWR);
  for (int fd = 0; here && fd <= 2; ++fd) dup2(nothing, fd);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  use(copy);
  MPI_Comm_free(&copy);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
}

// Closing any descriptor of a file drops all of the process's record locks on it.
void search(bool here) {
  use(MPI_COMM_WORLD);
  for (int fd = 3; here && fd < 200; ++fd) {
    char target[8] = "";
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    if (readlink(path.c_str(), target, sizeof target) <= 0 || target[0] != '/') continue;
    close(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    close(fcntl(fd, F_DUPFD_CLOEXEC, 300));
  }
  if (here) sleep(1);  // meanwhile the others check whether it is alive
  use(MPI_COMM_WORLD);
}

void limit(bool here) {
  const rlimit few{65536, 65536};
  if (here) setrlimit(RLIMIT_FSIZE, &few);
  use(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  alarm(watchdog);
  test::start(argc, argv);
  // Let MPI make its own connections first.
  std::vector<int> from(static_cast<size_t>(size)), to(from.size());
  IN_MPI(MPI_Alltoall)(from.data(), 1, MPI_INT, to.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool here = argc < 3 || std::stoi(argv[2]) == rank;
  if (mode == "closed") close_standard(here);
  if (mode == "searched") search(here);
  if (mode == "limited") limit(here);
  return test::finish("descriptors");
}
