// SPDX-License-Identifier: BSD-3-Clause
//
// breaks MODE [--calls N] [--breaks N] [--folder F] [--seed N]: collectives while the
// connections of Sluice break. Every result is checked. A call may return an error, which ends the
// job with its text, "rank 1: error: ...".
//   between  so many calls, with so many breaks between them: all ranks reset their sockets, but
//            for those that hold bytes which would be lost
//   within   the same, but a thread of each rank resets one at any time
//   outage   some calls, then each rank makes the file F/computes-RANK, and computes until there is
//            F/go; so many calls, then it makes F/calls-RANK, and goes on until there is F/over, or
//            a call fails; the error is in F/error-RANK
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

constexpr unsigned watchdog = 280;

using test::rank, test::size;
std::string folder;

int option_of(int fd, int level, int option) {
  int value = -1;
  socklen_t length = sizeof(value);
  return getsockopt(fd, level, option, &value, &length) == 0 ? value : -1;
}

// Sluice's connections. (MPI's have the system's keepalive, of hours.)
std::vector<int> sockets() {
  std::vector<int> found;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    const bool connected = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
    const int idle = option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    if (connected && idle > 0 && idle <= 10) found.push_back(fd);
  }
  return found;
}

void note(const std::string& name, const std::string& text) {
  const std::string path = folder + "/" + name + "-" + std::to_string(rank);
  std::ofstream(path + ".new") << text << std::endl;
  std::rename((path + ".new").c_str(), path.c_str());
}

bool exists(const std::string& name) { return access((folder + "/" + name).c_str(), F_OK) == 0; }

// So that the others' errors are seen, too.
void await_errors() {
  if (folder.empty()) sleep(1);
  for (int other = 0, i = 0; !folder.empty() && other < size && i < 100; ++i) {
    exists("error-" + std::to_string(other)) ? ++other : usleep(100'000);
  }
}

// True unless it failed, and then the job ends.
bool holds(int outcome) {
  if (outcome == MPI_SUCCESS) return true;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(outcome, text, &length);
  std::printf("rank %d: error: %s\n", rank, text);
  std::fflush(stdout);
  if (!folder.empty()) note("error", text);
  await_errors();
  MPI_Abort(MPI_COMM_WORLD, 3);
  return false;
}

void call(test::Random& random, int number) {
  const size_t counts[] = {1, 100, 20'000};
  const size_t count = counts[random.below(3)];
  const int length = static_cast<int>(count), root = static_cast<int>(random.below(size));
  std::vector<int> from(count, rank + number), to(count, -1);
  if (random.chance(2)) {
    holds(MPI_Allreduce(from.data(), to.data(), length, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    const int sum = size * (size - 1) / 2 + size * number;
    for (const int each : to) test::check(each == sum, "a sum");
  } else {
    holds(MPI_Bcast(from.data(), length, MPI_INT, root, MPI_COMM_WORLD));
    for (const int each : from) test::check(each == root + number, "what the root sent");
  }
}

// Each pair of ranks hears from the other. (A first connection that breaks before both have
// answered cannot be resumed.)
void meet_all() {
  const int length = 20'000;
  std::vector<int> from(static_cast<size_t>(length * size), rank), to(from.size(), -1);
  for (int i = 0; i < 2; ++i) {
    holds(MPI_Alltoall(from.data(), length, MPI_INT, to.data(), length, MPI_INT, MPI_COMM_WORLD));
  }
}

// As if a firewall had sent a reset. The peer gets one, too.
void reset(int fd) {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  (void)connect(fd, &none, sizeof(none));
}

int break_all() {
  int broken = 0;
  for (const int fd : sockets()) {
    int unread = 0;
    if (ioctl(fd, FIONREAD, &unread) != 0 || unread > 0) continue;
    reset(fd);
    ++broken;
  }
  return broken;
}

void between(test::Random& random, int calls, int breaks) {
  const auto barrier = IN_MPI(MPI_Barrier);
  int broken = 0;
  for (int i = 0; i < calls; ++i) {
    call(random, i);
    if (random.below(static_cast<size_t>(calls)) >= static_cast<size_t>(breaks)) continue;
    barrier(MPI_COMM_WORLD);
    broken += break_all();
    barrier(MPI_COMM_WORLD);
  }
  std::printf("rank %d: broke %d connections\n", rank, broken);
}

void within(test::Random& random, int calls, int breaks) {
  std::atomic<bool> over{false};
  std::thread breaker(
      [&, own = test::Random(random.next() + static_cast<uint64_t>(rank))]() mutable {
        for (int i = 0; i < breaks && !over; ++i) {
          std::this_thread::sleep_for(std::chrono::microseconds(own.below(20'000)));
          const std::vector<int> all = sockets();
          if (!all.empty()) reset(own.pick(all));
        }
      });
  for (int i = 0; i < calls; ++i) call(random, i);
  over = true;
  breaker.join();
}

void survive(test::Random& random, int calls) {
  note("computes", "");
  while (!exists("go")) usleep(20'000);
  for (int i = 0; i < calls; ++i) call(random, i);
  note("calls", "");
  for (int i = 0, over = 0; over == 0; ++i) {
    call(random, i);
    usleep(1000);
    over = exists("over") ? 1 : 0;
    holds(MPI_Allreduce(MPI_IN_PLACE, &over, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  }
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv, MPI_THREAD_FUNNELED);
  alarm(watchdog);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const test::Options options(argc, argv);
  const std::string mode = argc > 1 ? argv[1] : "";
  folder = options.text("folder", "");
  test::Random random(test::agree_on_seed(options));
  const int calls = static_cast<int>(options.number("calls", 1000));
  const int breaks = static_cast<int>(options.number("breaks", 10));
  meet_all();
  for (int i = 0; i < 20; ++i) call(random, i);
  if (mode == "between") between(random, calls, breaks);
  if (mode == "within") within(random, calls, breaks);
  if (mode == "outage") survive(random, calls);
  return test::finish("breaks");
}
