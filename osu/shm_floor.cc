// SPDX-License-Identifier: BSD-3-Clause
//
// osu_shm_floor: the lower bound that one host's memory sets for processes that pass each other
// blocks. It uses only flags in cache lines: no headers, no matching, no MPI. As in the benchmarks,
// all processes meet before each exchange, and only the exchange is timed. Blocks go by the two
// possible ways: through shared memory (each process copies in and out; up to 64 KB), or by
// process_vm_readv from the owner's memory (one copy, by the kernel). Each process also copies its
// own block, as allgather and alltoall must; with 0 bytes it is a barrier. No such collective can
// be faster on these ways. Prints in the format of the OSU Micro-Benchmarks; the first column is
// the faster way.
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "osu/command_line.h"
#include "osu/floor.h"

namespace sluice::osu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t most_ranks = 32;
constexpr size_t longest_slot = size_t{64} << 10;

struct Settings {
  int ranks = 2;
  ByteRange bytes;
  int iterations = 1000;
  bool all_to_all = false;
};

// The flag line that one process writes. Its slots follow in Shared, by rank and turn.
struct alignas(128) Side {
  std::atomic<uint64_t> round{0};
  uint64_t address = 0;  // of its blocks, for process_vm_readv
  double microseconds = 0;
};

struct Shared {
  Side sides[most_ranks];
  pid_t processes[most_ranks]{};
  std::byte slots[most_ranks][2][longest_slot];
};

class Rank {
 public:
  Rank(Shared& shared, const Settings& settings, int number)
      : shared_(shared),
        settings_(settings),
        me_(static_cast<size_t>(number)),
        ranks_(static_cast<size_t>(settings.ranks)),
        alone_(take_processor(number, settings.ranks)),
        out_((settings.all_to_all ? ranks_ : 1) * std::max<size_t>(settings.bytes.max, 1)),
        in_(ranks_ * std::max<size_t>(settings.bytes.max, 1)) {
    shared_.processes[me_] = getpid();
    shared_.sides[me_].address = reinterpret_cast<uintptr_t>(out_.data());
    wait_for_all();
  }

  // Microseconds per exchange of so many bytes, averaged over iterations and processes.
  double measure(size_t bytes, bool by_kernel) {
    const int iterations = bytes > 65536 ? settings_.iterations / 10 + 1 : settings_.iterations;
    Clock::duration took{};
    for (int i = -iterations / 10 - 1; i < iterations; ++i) {
      wait_for_all();
      const auto began = Clock::now();
      if (bytes == 0) {
        wait_for_all();
      } else if (by_kernel) {
        fetch(bytes);
      } else {
        pass(bytes);
      }
      if (i >= 0) took += Clock::now() - began;
    }
    shared_.sides[me_].microseconds =
        std::chrono::duration<double, std::micro>(took).count() / iterations;
    wait_for_all();
    double sum = 0;
    for (size_t rank = 0; rank < ranks_; ++rank) sum += shared_.sides[rank].microseconds;
    wait_for_all();
    return sum / static_cast<double>(ranks_);
  }

 private:
  void say() { shared_.sides[me_].round.store(++round_, std::memory_order_release); }
  void await(size_t rank) {
    while (shared_.sides[rank].round.load(std::memory_order_acquire) < round_) {
      if (alone_) {
#ifdef __SSE2__
        __builtin_ia32_pause();
#endif
      } else {
        sched_yield();
      }
    }
  }
  void wait_for_all() {
    say();
    for (size_t rank = 0; rank < ranks_; ++rank) await(rank);
  }
  char* place_of(size_t rank, size_t bytes) { return in_.data() + rank * bytes; }
  // Offset of the block for `rank` in the owner's memory.
  size_t offset_for(size_t rank, size_t bytes) const {
    return settings_.all_to_all ? rank * bytes : 0;
  }
  void copy_own(size_t bytes) {
    std::memcpy(place_of(me_, bytes), out_.data() + offset_for(me_, bytes), bytes);
  }

  // Two slots suffice: processes meet twice before a slot is written again.
  void pass(size_t bytes) {
    std::byte* const slot = shared_.slots[me_][turn_ % 2];
    std::memcpy(slot, out_.data(), bytes);
    say();
    copy_own(bytes);
    for (size_t step = 1; step < ranks_; ++step) {
      const size_t rank = (me_ + step) % ranks_;
      await(rank);
      std::memcpy(place_of(rank, bytes), shared_.slots[rank][turn_ % 2], bytes);
    }
    ++turn_;
  }

  void fetch(size_t bytes) {
    say();
    copy_own(bytes);
    for (size_t step = 1; step < ranks_; ++step) {
      const size_t rank = (me_ + step) % ranks_;
      await(rank);
      const iovec here{place_of(rank, bytes), bytes};
      const uint64_t address = shared_.sides[rank].address + offset_for(me_, bytes);
      const iovec there{reinterpret_cast<void*>(address), bytes};
      if (process_vm_readv(shared_.processes[rank], &here, 1, &there, 1, 0) !=
          static_cast<ssize_t>(bytes)) {
        fail("process_vm_readv");
      }
    }
    wait_for_all();  // until then others may read this process's memory
  }

  Shared& shared_;
  const Settings& settings_;
  const size_t me_, ranks_;
  const bool alone_;
  std::vector<char> out_, in_;
  uint64_t round_ = 0, turn_ = 0;
};

void run(Shared& shared, const Settings& settings, int number) {
  Rank rank(shared, settings, number);
  if (number == 0) {
    std::printf("# %s of %d processes through memory, no more\n%-10s%18s%18s%18s\n",
                settings.all_to_all ? "Alltoall" : "Allgather", settings.ranks, "# Size",
                "Avg Latency(us)", "Shared(us)", "Kernel(us)");
  }
  for (size_t bytes = settings.bytes.min; bytes <= settings.bytes.max;
       bytes = bytes > 0 ? bytes * 2 : 1) {
    const double kernel = rank.measure(bytes, true);
    const double shared_memory = bytes <= longest_slot ? rank.measure(bytes, false) : kernel;
    if (number == 0) {
      std::printf("%-10zu%18.2f%18.2f%18.2f\n", bytes, std::min(kernel, shared_memory),
                  shared_memory, kernel);
      std::fflush(stdout);
    }
  }
}

Shared* share() {
  constexpr int access = PROT_READ | PROT_WRITE;
  void* const memory = mmap(nullptr, sizeof(Shared), access, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  return new (memory) Shared;
}

}  // namespace
}  // namespace sluice::osu

int main(int argc, char** argv) {
  sluice::osu::Settings settings;
  sluice::osu::CommandLine line(
      "What memory alone takes for processes of one host to hand each other blocks.",
      "osu_shm_floor");
  line.number("-n,--ranks", &settings.ranks, "processes (default 2)", 2,
              static_cast<int>(sluice::osu::most_ranks));
  line.sizes(&settings.bytes, "bytes of a block, doubling (default 4:4194304)", 0);
  line.number("-i,--iterations", &settings.iterations,
              "exchanges at each size, a tenth above 64 KB (default 1000)", 1, 1 << 30);
  line.flag("--alltoall", &settings.all_to_all, "everybody has a block of its own for each");
  line.parse(argc, argv);
  sluice::osu::Shared* const shared = sluice::osu::share();
  const auto body = [&](int number) { sluice::osu::run(*shared, settings, number); };
  const bool good = sluice::osu::run_processes(settings.ranks, body);
  return sluice::osu::exit_status("osu_shm_floor", good);
}
