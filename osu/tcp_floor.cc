// SPDX-License-Identifier: BSD-3-Clause
//
// osu_tcp_floor: the lower bound that the kernel's TCP sets for messages between processes over
// loopback: one send and as few receives as the kernel allows, no headers, no matching, no MPI. Two
// processes, each spinning on a processor of its own, exchange one message each; no allreduce,
// allgather, alltoall or barrier of two ranks over TCP can be faster. A larger power of two of
// processes exchanges with the partners of recursive doubling in turn, and yields if processors are
// shared: an allreduce or barrier without arithmetic. Prints in the format of the OSU
// Micro-Benchmarks.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "osu/command_line.h"
#include "osu/floor.h"

namespace sluice::osu {
namespace {

using Clock = std::chrono::steady_clock;

// One process's end of the mesh: sockets[k] leads to the partner whose number differs in bit k.
struct Rank {
  int number = 0;
  bool alone = true;  // on its processor
  std::vector<int> sockets;
};

void need(bool good, const char* what) {
  if (!good) fail(what);
}

void set_manners(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);  // other algorithms may pace loopback
}

void count(ssize_t bytes, size_t* done) {
  if (bytes > 0) {
    *done += static_cast<size_t>(bytes);
  } else {
    need(bytes < 0 && (errno == EAGAIN || errno == EINTR), "the other process is gone");
  }
}

void exchange(int socket, bool alone, const std::vector<char>& out, std::vector<char>& in) {
  size_t sent = 0, got = 0;
  while (sent < out.size() || got < in.size()) {
    const size_t before = sent + got;
    if (sent < out.size()) {
      count(send(socket, out.data() + sent, out.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL), &sent);
    }
    if (got < in.size()) count(recv(socket, in.data() + got, in.size() - got, MSG_DONTWAIT), &got);
    if (!alone && sent + got == before) sched_yield();
  }
}

void run(const Rank& rank, const ByteRange& range, int iterations) {
  if (rank.number == 0) {
    std::printf("# Exchange of %d bare sockets\n%-10s%18s\n", 1 << rank.sockets.size(), "# Size",
                "Avg Latency(us)");
  }
  for (size_t bytes = range.min; bytes <= range.max; bytes *= 2) {
    const std::vector<char> out(bytes);
    std::vector<char> in(bytes);
    const auto exchange_with_all = [&] {
      for (const int socket : rank.sockets) exchange(socket, rank.alone, out, in);
    };
    for (int i = 0; i < iterations / 10 + 1; ++i) exchange_with_all();
    const auto began = Clock::now();
    for (int i = 0; i < iterations; ++i) exchange_with_all();
    const std::chrono::duration<double, std::micro> took = Clock::now() - began;
    if (rank.number == 0) std::printf("%-10zu%18.2f\n", bytes, took.count() / iterations);
  }
}

int listen_on_loopback(sockaddr_in* address) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(*address);
  auto* const generic = reinterpret_cast<sockaddr*>(address);
  need(listener >= 0 && bind(listener, generic, size) == 0 && listen(listener, 1) == 0 &&
           getsockname(listener, generic, &size) == 0,
       "listening on loopback");
  return listener;
}

// Both ends of a new connection.
std::pair<int, int> connect_pair() {
  sockaddr_in address{};
  const int listener = listen_on_loopback(&address);
  const int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  need(one >= 0 && connect(one, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0,
       "connect");
  const int other = accept(listener, nullptr, nullptr);
  need(other >= 0, "accept");
  close(listener);
  set_manners(one);
  set_manners(other);
  return {one, other};
}

std::vector<Rank> make_ranks(int ranks) {
  std::vector<Rank> all(ranks);
  for (int number = 0; number < ranks; ++number) all[number].number = number;
  for (int bit = 1; bit < ranks; bit *= 2) {
    for (int number = 0; number < ranks; ++number) {
      if (number & bit) continue;
      const auto [one, other] = connect_pair();
      all[number].sockets.push_back(one);
      all[number | bit].sockets.push_back(other);
    }
  }
  return all;
}

void run_alone(std::vector<Rank>& all, int number, const ByteRange& range, int iterations) {
  all[number].alone = take_processor(number, static_cast<int>(all.size()));
  // So that a process that waits for a dead one gets an end of file.
  for (const Rank& other : all) {
    for (const int socket : other.sockets) {
      if (other.number != number) close(socket);
    }
  }
  run(all[number], range, iterations);
}

}  // namespace
}  // namespace sluice::osu

int main(int argc, char** argv) {
  sluice::osu::ByteRange range;
  int iterations = 1000;
  int ranks = 2;
  sluice::osu::CommandLine line("What bare sockets take to exchange messages over loopback TCP.",
                                "osu_tcp_floor");
  line.choice("-n,--ranks", &ranks, "processes, a power of two (default 2)", {2, 4, 8, 16, 32});
  line.sizes(&range, "bytes, doubling (default 4:4194304)", 1);
  line.number("-i,--iterations", &iterations, "exchanges at each size (default 1000)", 1, 1 << 30);
  line.parse(argc, argv);
  std::vector<sluice::osu::Rank> all = sluice::osu::make_ranks(ranks);
  const auto body = [&](int number) { sluice::osu::run_alone(all, number, range, iterations); };
  const bool good = sluice::osu::run_processes(ranks, body);
  return sluice::osu::exit_status("osu_tcp_floor", good);
}
