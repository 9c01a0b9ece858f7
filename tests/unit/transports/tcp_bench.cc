// SPDX-License-Identifier: BSD-3-Clause
//
// The speed of the TCP transport alone, between two processes of this host:
//   tcp_bench [congestion control]
//
//   exchange   both send and receive one message, as in an allreduce of two ranks: microseconds
//   pingpong   half of a round trip, in microseconds
//   one way    thousands of messages or 64 MiB, several posted at a time: GB/s
//   both ways  the same in both directions at once: GB/s each way
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "transports/tcp/tcp.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t most_posted = 8;
// The number of messages of this size in a burst.
size_t burst_size(size_t bytes) { return std::min<size_t>(4096, (size_t{64} << 20) / bytes); }

struct Posted {
  Operation operation;
  Bytes piece;
  bool done = true;
};

class Bench {
 public:
  Bench(size_t rank, int pipe, const TcpOptions& options) : first_(rank == 0), pipe_(pipe) {
    TcpOptions mine = options;
    mine.self = {1, rank};
    endpoint_ = take(make_tcp_endpoint(mine));
    Peer peer{{1, 1 - rank}, endpoint_->address(), "the other"};
    const uint8_t size = static_cast<uint8_t>(peer.address.size());
    uint8_t other_size = 0;
    say(&size, 1);
    say(peer.address.data(), size);
    hear(&other_size, 1);
    peer.address.resize(other_size);
    hear(peer.address.data(), other_size);
    channel_ = take(endpoint_->open(TeamId{{1, 0}, 1}, peer));
    memory_.resize(2 * most_posted * endpoint_->caps().max_message);
  }
  ~Bench() { channel_.reset(); }

  void exchange(size_t bytes) {
    post(receives_[0], false, bytes, 0);
    post(sends_[0], true, bytes, 0);
    finish();
  }
  void pingpong(size_t bytes) {
    for (const bool sends : {first_, !first_}) {
      post(sends ? sends_[0] : receives_[0], sends, bytes, 0);
      finish();
    }
  }
  void burst(size_t bytes, bool both) {
    const size_t count = burst_size(bytes);
    size_t sent = first_ || both ? 0 : count, received = first_ && !both ? count : 0;
    while (sent < count || received < count) {
      for (size_t i = 0; i < most_posted; ++i) {
        if (received < count && receives_[i].done) post(receives_[i], false, bytes, received++);
        if (sent < count && sends_[i].done) post(sends_[i], true, bytes, sent++);
      }
      progress();
    }
    finish();
  }

  template <typename Function>
  double median_us(int rounds, Function function) {
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
      const auto begin = Clock::now();
      function();
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  bool first() const { return first_; }
  size_t max_message() const { return endpoint_->caps().max_message; }

 private:
  template <typename T>
  T take(Result<T> result) {
    if (!result.ok()) {
      fprintf(stderr, "%s\n", result.status().message().c_str());
      exit(1);
    }
    return std::move(*result);
  }
  void say(const void* data, size_t size) {
    if (write(pipe_, data, size) != static_cast<ssize_t>(size)) exit(1);
  }
  void hear(void* data, size_t size) {
    if (read(pipe_, data, size) != static_cast<ssize_t>(size)) exit(1);
  }

  void post(Posted& posted, bool sends, size_t bytes, size_t segment) {
    const size_t slot = static_cast<size_t>(&posted - (sends ? sends_ : receives_));
    posted.piece = {memory_.data() + (2 * slot + sends) * max_message(), bytes};
    posted.operation.tag = {call_, 0, static_cast<uint32_t>(segment), 0};
    posted.operation.pieces = {&posted.piece, 1};
    posted.operation.bytes = bytes;
    posted.operation.queue = &queue_;
    posted.done =
        sends ? channel_->post_send(&posted.operation) : channel_->post_recv(&posted.operation);
    pending_ += !posted.done;
  }
  void progress() {
    if (pending_ > 0) endpoint_->progress();
    for (Operation* done = queue_.pop_all(); done != nullptr; done = done->next) {
      reinterpret_cast<Posted*>(done)->done = true;
      --pending_;
      if (!done->status.ok()) {
        fprintf(stderr, "%s\n", done->status.message().c_str());
        exit(1);
      }
    }
  }
  void finish() {
    while (pending_ > 0) progress();
    ++call_;
  }

  const bool first_;
  const int pipe_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Channel> channel_;
  std::vector<std::byte> memory_;
  CompletionQueue queue_;
  Posted receives_[most_posted], sends_[most_posted];
  size_t pending_ = 0;
  uint32_t call_ = 0;
};

void run(Bench& bench) {
  if (bench.first()) {
    printf("%9s %10s %10s %10s %10s\n", "bytes", "exchange", "pingpong", "one way", "both ways");
  }
  for (size_t bytes = 4; bytes <= bench.max_message(); bytes *= 4) {
    const int rounds = bytes < 65536 ? 20000 : 1000;
    bench.median_us(rounds / 10, [&] { bench.exchange(bytes); });
    const double exchange = bench.median_us(rounds, [&] { bench.exchange(bytes); });
    const double pingpong = bench.median_us(rounds, [&] { bench.pingpong(bytes); }) / 2;
    double one_way = 0, both_ways = 0;
    if (bytes >= 1024) {
      one_way = bench.median_us(7, [&] { bench.burst(bytes, false); });
      both_ways = bench.median_us(7, [&] { bench.burst(bytes, true); });
    }
    if (!bench.first()) continue;
    printf("%9zu %10.2f %10.2f", bytes, exchange, pingpong);
    for (const double us : {one_way, both_ways}) {
      if (us > 0) printf(" %10.2f", static_cast<double>(burst_size(bytes) * bytes) / us / 1e3);
    }
    printf("\n");
    fflush(stdout);
  }
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  int pipes[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pipes) != 0) return 1;
  const pid_t child = fork();
  sluice::TcpOptions options;
  options.max_message = size_t{4} << 20;
  if (argc > 1) options.congestion = argv[1];
  {
    sluice::Bench bench(child != 0 ? 0 : 1, pipes[child != 0 ? 0 : 1], options);
    sluice::run(bench);
  }
  if (child == 0) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
