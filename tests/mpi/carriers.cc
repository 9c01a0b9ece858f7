// SPDX-License-Identifier: BSD-3-Clause
//
// carriers CALLS BYTES: makes this many checked allreduces of this size, after some that let links
// settle. Prints how many bytes all TCP sockets of the process, MPI's own included, sent meanwhile
// ("rank 1 sent 96 bytes over TCP"). tests/mpi/test_carriers knows the expected amount.
#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>

#include "tests/mpi/harness.h"

namespace {

unsigned long long bytes_over_tcp() {
  unsigned long long bytes = 0;
  DIR* const directory = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(directory)) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(std::atoi(entry->d_name), IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
      bytes += info.tcpi_bytes_sent;
    }
  }
  closedir(directory);
  return bytes;
}

void reduce(int calls, size_t elements, int ranks, int rank) {
  std::vector<int> in(elements), out(elements);
  for (int call = 0; call < calls; ++call) {
    for (size_t i = 0; i < elements; ++i) in[i] = rank + call + static_cast<int>(i);
    MPI_Allreduce(in.data(), out.data(), static_cast<int>(elements), MPI_INT, MPI_SUM,
                  MPI_COMM_WORLD);
    for (size_t i = 0; i < elements; ++i) {
      const int sum = ranks * (ranks - 1) / 2 + ranks * (call + static_cast<int>(i));
      if (out[i] != sum) test::fail("a sum is wrong");
    }
  }
  test::check(true, "all sums are right");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3) test::fail("carriers CALLS BYTES");
  const size_t elements = std::strtoul(argv[2], nullptr, 10) / sizeof(int);
  reduce(20, elements, ranks, rank);
  const unsigned long long before = bytes_over_tcp();
  reduce(std::atoi(argv[1]), elements, ranks, rank);
  std::printf("rank %d sent %llu bytes over TCP\n", rank, bytes_over_tcp() - before);
  test::summarize("carriers");
  MPI_Finalize();
}
