// SPDX-License-Identifier: BSD-3-Clause
//
// hostile_connections CONNECTIONS: collectives stay correct while strangers hold connections to
// Sluice's listener. Each rank forks a child. After a first collective made Sluice listen, the
// child opens this many connections, sends nothing, and reconnects whenever Sluice closes one. Then
// collectives that need new connections must work.
//
// hostile_connections FOLDER: the same with strangers from elsewhere. Each rank writes where it
// listens to FOLDER/listens.RANK, and waits for FOLDER/go. Then pairs of ranks connect one after
// another.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "tests/mpi/harness.h"

namespace {

constexpr unsigned watchdog = 60;
constexpr int most_returns = 500;  // reconnections of a child

using test::rank, test::size;

using Addresses = std::vector<sockaddr_in>;

// The listening sockets of this process, by descriptor.
std::map<int, sockaddr_in> listeners() {
  std::map<int, sockaddr_in> found;
  for (int fd = 0; fd < 64; ++fd) {
    int listening = 0;
    socklen_t length = sizeof listening;
    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length);
    sockaddr_in at{};
    length = sizeof at;
    if (!listening || getsockname(fd, reinterpret_cast<sockaddr*>(&at), &length) != 0) continue;
    if (at.sin_family == AF_INET) found.emplace(fd, at);
  }
  return found;
}

int connect_to(const sockaddr_in& at) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  (void)!connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at);
  return fd;
}

// The child: reads the addresses, reports when it has connected, and goes on until its parent ends.
[[noreturn]] void besiege(int orders, int reports, int connections) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(watchdog);
  for (const int fd : {0, 1, 2}) close(fd);
  rlimit most{};
  getrlimit(RLIMIT_NOFILE, &most);
  most.rlim_cur = most.rlim_max;
  setrlimit(RLIMIT_NOFILE, &most);
  Addresses targets(16);
  const ssize_t got = read(orders, targets.data(), targets.size() * sizeof targets[0]);
  if (got <= 0) _exit(0);
  targets.resize(static_cast<size_t>(got) / sizeof targets[0]);
  std::vector<pollfd> polls{{orders, POLLIN, 0}};
  const auto target = [&](size_t i) { return targets[i % targets.size()]; };
  for (int i = 0; i < connections; ++i) {
    polls.push_back({connect_to(target(polls.size())), POLLIN, 0});
  }
  (void)!write(reports, "!", 1);
  for (int returns = 0; polls[0].revents == 0; poll(polls.data(), polls.size(), -1)) {
    for (size_t i = 1; i < polls.size(); ++i) {
      if (polls[i].revents == 0) continue;
      close(polls[i].fd);
      polls[i].fd = ++returns < most_returns ? connect_to(target(i)) : -1;
    }
    usleep(1000);
  }
  _exit(0);
}

void use(MPI_Comm comm) {
  const std::vector<int> from(static_cast<size_t>(size), rank);
  std::vector<int> to(from.size());
  MPI_Alltoall(from.data(), 1, MPI_INT, to.data(), 1, MPI_INT, comm);
  for (int i = 0; i < size; ++i) test::check(to[static_cast<size_t>(i)] == i, "an exchange");
}

std::string read_targets(const Addresses& targets) {
  std::string text;
  for (const sockaddr_in& at : targets) {
    char name[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &at.sin_addr, name, sizeof name);
    text += std::string(name) + " " + std::to_string(ntohs(at.sin_port)) + "\n";
  }
  return text;
}

void invite(const std::string& folder, const Addresses& targets) {
  const std::string path = folder + "/listens." + std::to_string(rank);
  std::ofstream(path + ".new") << read_targets(targets);
  test::check(rename((path + ".new").c_str(), path.c_str()) == 0, "an invitation");
  while (access((folder + "/go").c_str(), F_OK) != 0) usleep(5000);
}

// Each pair of ranks needs a connection of its own.
void connect_in_turn() {
  for (int a = 0; a < size; ++a) {
    for (int b = a + 1; b < size; ++b) {
      MPI_Comm pair;
      MPI_Comm_split(MPI_COMM_WORLD, rank == a || rank == b ? 0 : MPI_UNDEFINED, rank, &pair);
      if (pair == MPI_COMM_NULL) continue;
      usleep(20000);
      for (int i = 0; i < 20; ++i) {
        int sum = 0;
        const int mine = rank + i;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, pair);
        test::check(sum == a + b + 2 * i, "a sum of two");
      }
      MPI_Comm_free(&pair);
    }
  }
}

size_t open_descriptors() {
  size_t open = 0;
  for (int fd = 0; fd < 4096; ++fd) open += fcntl(fd, F_GETFD) >= 0;
  return open;
}

// Those that have not greeted are few, whatever comes.
void check_descriptors(size_t before) {
  constexpr size_t pending = 32, kept = 8;
  test::check(open_descriptors() <= before + static_cast<size_t>(size) + pending + kept,
              "few descriptors");
}

}  // namespace

int main(int argc, char** argv) {
  alarm(watchdog);
  const std::string folder = argc > 1 && argv[1][0] == '/' ? argv[1] : "";
  int orders[2], reports[2];
  if (pipe(orders) != 0 || pipe(reports) != 0) return 1;
  const pid_t child = folder.empty() ? fork() : -1;
  if (child == 0) {
    close(orders[1]);
    besiege(orders[0], reports[1], argc > 1 ? std::atoi(argv[1]) : 50);
  }
  close(orders[0]);
  close(reports[1]);
  test::start(argc, argv);
  std::vector<int> from(static_cast<size_t>(size)), to(from.size());
  IN_MPI(MPI_Alltoall)(from.data(), 1, MPI_INT, to.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const auto before = listeners();
  int word = 7;
  MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
  Addresses targets;
  for (const auto& [fd, at] : listeners()) {
    if (!before.contains(fd)) targets.push_back(at);
  }
  test::check(!targets.empty(), "Sluice listens");
  if (folder.empty()) {
    char ready = 0;
    (void)!write(orders[1], targets.data(), targets.size() * sizeof targets[0]);
    (void)!read(reports[0], &ready, 1);
    test::check(ready == '!', "there is a siege");
    IN_MPI(MPI_Barrier)(MPI_COMM_WORLD);
  } else {
    const size_t descriptors = open_descriptors();
    invite(folder, targets);
    connect_in_turn();
    check_descriptors(descriptors);
  }
  for (int i = 0; i < 50; ++i) use(MPI_COMM_WORLD);
  test::finish("hostile_connections");
  close(orders[1]);
  if (child > 0) waitpid(child, nullptr, 0);
}
