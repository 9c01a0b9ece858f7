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
#include <map>

#include "tests/mpi/harness.h"

namespace {

// What each TCP socket has sent, by its cookie: one that closes takes its count with it.
std::map<uint64_t, unsigned long long> sent_by_sockets() {
  std::map<uint64_t, unsigned long long> sent;
  DIR* const directory = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    uint64_t cookie = 0;
    tcp_info info{};
    socklen_t size = sizeof info, cookie_size = sizeof cookie;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &cookie_size) == 0) {
      sent[cookie] = info.tcpi_bytes_sent;
    }
  }
  closedir(directory);
  return sent;
}

unsigned long long bytes_over_tcp(std::map<uint64_t, unsigned long long> before) {
  unsigned long long bytes = 0;
  for (const auto& [cookie, sent] : sent_by_sockets()) bytes += sent - before[cookie];
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
  test::start(argc, argv);
  if (argc != 3) test::fail("carriers CALLS BYTES");
  const size_t elements = std::strtoul(argv[2], nullptr, 10) / sizeof(int);
  reduce(20, elements, test::size, test::rank);
  const auto before = sent_by_sockets();
  reduce(std::atoi(argv[1]), elements, test::size, test::rank);
  std::printf("rank %d sent %llu bytes over TCP\n", test::rank, bytes_over_tcp(before));
  return test::finish("carriers");
}
