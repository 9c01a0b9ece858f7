// SPDX-License-Identifier: BSD-3-Clause
//
// osu_tcp_floor: what the kernel's TCP alone takes for two processes to exchange a message each
// over loopback, each on a processor of its own: one send and as few receives as the kernel allows,
// spinning, no header, no matching, no MPI. No allreduce, allgather, alltoall or barrier of two
// ranks over TCP can be faster. Prints what the OSU Micro-Benchmarks print.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Range {
  size_t min = 4, max = size_t{4} << 20;
};

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "osu_tcp_floor: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void need(bool good, const char* what) {
  if (!good) give_up(what);
}

Range parse_range(const std::string& text) {
  Range range;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%zu:%zu%c", &range.min, &range.max, &rest) != 2 ||
      range.min == 0 || range.min > range.max) {
    throw CLI::ValidationError("--message-size", "'" + text + "' is not MIN:MAX in bytes");
  }
  return range;
}

// The n-th of the processors this process may use; stays where it is if there are fewer.
void take_processor(int n) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) <= n) return;
  int cpu = 0;
  for (; !CPU_ISSET(cpu, &allowed) || n-- > 0; ++cpu) {
  }
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

void set_manners(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);  // others may pace loopback
}

void count(ssize_t bytes, size_t* done) {
  if (bytes > 0) {
    *done += static_cast<size_t>(bytes);
  } else {
    need(bytes < 0 && (errno == EAGAIN || errno == EINTR), "the other process is gone");
  }
}

void exchange(int socket, const std::vector<char>& out, std::vector<char>& in) {
  size_t sent = 0, got = 0;
  while (sent < out.size() || got < in.size()) {
    if (sent < out.size()) {
      count(send(socket, out.data() + sent, out.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL), &sent);
    }
    if (got < in.size()) count(recv(socket, in.data() + got, in.size() - got, MSG_DONTWAIT), &got);
  }
}

void run(int socket, const Range& range, int iterations, bool speaks) {
  if (speaks)
    std::printf("# Exchange of two bare sockets\n%-10s%18s\n", "# Size", "Avg Latency(us)");
  for (size_t bytes = range.min; bytes <= range.max; bytes *= 2) {
    const std::vector<char> out(bytes);
    std::vector<char> in(bytes);
    for (int i = 0; i < iterations / 10 + 1; ++i) exchange(socket, out, in);
    const auto began = Clock::now();
    for (int i = 0; i < iterations; ++i) exchange(socket, out, in);
    const std::chrono::duration<double, std::micro> took = Clock::now() - began;
    if (speaks) std::printf("%-10zu%18.2f\n", bytes, took.count() / iterations);
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

}  // namespace

int main(int argc, char** argv) {
  std::string sizes = "4:4194304";
  int iterations = 1000;
  CLI::App app("What two bare sockets take to exchange a message over loopback TCP.",
               "osu_tcp_floor");
  app.add_option("-m,--message-size", sizes, "bytes, doubling (default 4:4194304)")
      ->type_name("MIN:MAX");
  app.add_option("-i,--iterations", iterations, "exchanges at each size (default 1000)")
      ->check(CLI::Range(1, 1 << 30));
  Range range;
  try {
    app.parse(argc, argv);
    range = parse_range(sizes);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  sockaddr_in address{};
  const int listener = listen_on_loopback(&address);
  const pid_t child = fork();
  need(child >= 0, "fork");
  take_processor(child == 0 ? 1 : 0);
  int connected;
  if (child == 0) {
    connected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    need(connect(connected, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0,
         "connect");
  } else {
    connected = accept(listener, nullptr, nullptr);
    need(connected >= 0, "accept");
  }
  set_manners(connected);
  run(connected, range, iterations, child != 0);
  if (child == 0) return 0;
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
