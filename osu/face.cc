// SPDX-License-Identifier: BSD-3-Clause
//
// osu_face measures Sluice's own time in a call, without the time that the data takes. Two ranks
// call MPI_Allreduce of 8 bytes back to back. In turn with that, they exchange 8 bytes by the same
// steps, hand-coded over shared memory: flag and payload in one cache line, four lines in turn, and
// a word that says what was read. Neither rank can be a call ahead of the other, so all its work is
// on the critical path. So the difference between a call and a bare exchange is the time from the
// MPI symbol to the first store of the payload, plus the time from the last load back to the
// program. Rounds are short, so that some are undisturbed on a busy machine; the second column
// shows these fast rounds. Without Sluice, the program measures the MPI library in the same way.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "osu/command_line.h"

namespace {

constexpr uint64_t depth = 4;

struct alignas(128) Line {
  std::atomic<uint64_t> round{0};
  uint32_t what = 0, bytes = 0;
  std::byte payload[48];
};

// The memory that one rank writes.
struct Side {
  Line taken;
  Line slots[depth];
};

class Exchange {
 public:
  Exchange(Side* own, Side* other) : own_(own), other_(other) {}

  void sum(const double* in, double* out) {
    ++round_;
    if (round_ > seen_ + depth) seen_ = await(other_->taken, round_ - depth);
    Line& mine = own_->slots[round_ % depth];
    const Line& theirs = other_->slots[round_ % depth];
    std::memcpy(mine.payload, in, sizeof *in);
    mine.what = 1;
    mine.bytes = sizeof *in;
    mine.round.store(round_, std::memory_order_release);
    await(theirs, round_);
    if (theirs.what != 1 || theirs.bytes != sizeof *in) MPI_Abort(MPI_COMM_WORLD, 1);
    double value = 0;
    std::memcpy(&value, theirs.payload, sizeof value);
    *out = *in + value;
    own_->taken.round.store(round_, std::memory_order_release);
  }

 private:
  static uint64_t await(const Line& line, uint64_t round) {
    uint64_t seen = line.round.load(std::memory_order_acquire);
    for (uint64_t looks = 1; seen < round; ++looks) {
      if (looks % 1024 == 0) sched_yield();
      seen = line.round.load(std::memory_order_acquire);
    }
    return seen;
  }

  Side* own_;
  Side* other_;
  uint64_t round_ = 0, seen_ = 0;
};

// The shared memory of both ranks, and the exchange over it.
class Shared {
 public:
  explicit Shared(int rank) {
    Side* own = nullptr;
    Side* other = nullptr;
    MPI_Aint bytes = 0;
    int unit = 1;
    constexpr MPI_Aint room = sizeof(Side) + alignof(Side);
    MPI_Win_allocate_shared(room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window_);
    MPI_Win_shared_query(window_, 1 - rank, &bytes, &unit, &other);
    exchange.emplace(new (aligned(own)) Side, aligned(other));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~Shared() { MPI_Win_free(&window_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  std::optional<Exchange> exchange;

 private:
  static Side* aligned(Side* begin) {
    const auto address = reinterpret_cast<uintptr_t>(begin);
    return reinterpret_cast<Side*>((address + alignof(Side) - 1) / alignof(Side) * alignof(Side));
  }
  MPI_Win window_ = MPI_WIN_NULL;
};

// Nanoseconds per call, over n calls.
template <typename Call>
double time(int n, const Call& call) {
  const double in = 1;
  double out = 0;
  call(&in, &out);  // so that both ranks start together
  const double began = MPI_Wtime();
  for (int i = 0; i < n; ++i) call(&in, &out);
  const double took = MPI_Wtime() - began;
  if (out != 2) MPI_Abort(MPI_COMM_WORLD, 1);
  return 1e9 * took / n;
}

// The value below which this fraction of the values lies.
double quantile(std::vector<double> values, double part) {
  const auto place = static_cast<ptrdiff_t>(part * static_cast<double>(values.size()));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<size_t>(place)];
}

struct Options {
  int calls = 500, rounds = 1001;
};

void print(const char* name, double usual, double quick) {
  std::printf("%-24s%12.1f%12.1f\n", name, usual, quick);
}

void measure(const Options& options, int rank) {
  Shared shared(rank);
  std::vector<double> calls, bare, ways;
  for (int round = 0; round < options.rounds; ++round) {
    calls.push_back(time(options.calls, [](const double* in, double* out) {
      MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }));
    bare.push_back(
        time(options.calls, [&](const double* in, double* out) { shared.exchange->sum(in, out); }));
    ways.push_back(calls.back() - bare.back());
  }
  if (rank != 0) return;
  const double quick_call = quantile(calls, 0.1), quick_bare = quantile(bare, 0.1);
  std::printf("# 8 bytes, 2 ranks, ns a call, %d rounds of %d calls\n", options.rounds,
              options.calls);
  std::printf("%-24s%12s%12s\n", "#", "median", "10th of 100");
  print("MPI_Allreduce", quantile(calls, 0.5), quick_call);
  print("bare exchange", quantile(bare, 0.5), quick_bare);
  print("way in and way out", quantile(ways, 0.5), quick_call - quick_bare);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  sluice::osu::CommandLine line(
      "How long the way into and out of an MPI_Allreduce of 8 bytes is, on 2 ranks.", "osu_face");
  line.number("-i,--iterations", &options.calls, "calls in a round (default 500)", 1, 1 << 30);
  line.number("-r,--rounds", &options.rounds, "rounds (default 1001)", 1, 1 << 20);
  line.parse(argc, argv);
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 2) {
    measure(options, rank);
  } else if (rank == 0) {
    std::fprintf(stderr, "osu_face: it takes 2 ranks that share memory\n");
  }
  MPI_Finalize();
  return sluice::osu::exit_status("osu_face", size == 2);
}
