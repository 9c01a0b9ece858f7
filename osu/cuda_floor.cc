// SPDX-License-Identifier: BSD-3-Clause
//
// osu_cuda_floor: what staging cannot beat: one copy from a CUDA device to pinned memory, and one
// back, of the same bytes. Each copy is awaited before the next begins. Prints in the format of the
// OSU Micro-Benchmarks, with a column for each direction after their sum.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "osu/command_line.h"
#include "osu/device.h"

namespace sluice::osu {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  ByteRange range{4, size_t{64} << 20};
  int iterations = 100, device = 0;
};

double median(std::vector<double> samples) {
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples[samples.size() / 2];
}

// Microseconds, the median.
template <typename Copy>
double time(const Options& options, const Copy& copy) {
  std::vector<double> samples;
  for (int i = -options.iterations / 10; i < options.iterations; ++i) {
    const auto begin = Clock::now();
    copy();
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    if (i >= 0) samples.push_back(took.count());
  }
  return median(samples);
}

void measure(const Options& options) {
  void* const device = allocate_on(Place::device, options.range.max);
  void* const pinned = allocate_on(Place::pinned, options.range.max);
  std::memset(pinned, 1, options.range.max);
  std::printf("\n# CUDA copies between device and pinned memory\n%-10s%18s%18s%18s\n", "# Size",
              "Avg Latency(us)", "Out(us)", "In(us)");
  for (size_t bytes = options.range.min; bytes <= options.range.max; bytes *= 2) {
    const double out = time(options, [&] { copy_from_device(pinned, device, bytes); });
    const double in = time(options, [&] { copy_to_device(device, pinned, bytes); });
    std::printf("%-10zu%18.2f%18.2f%18.2f\n", bytes, out + in, out, in);
    std::fflush(stdout);
  }
  free_on(Place::pinned, pinned);
  free_on(Place::device, device);
}

}  // namespace
}  // namespace sluice::osu

int main(int argc, char** argv) {
  using namespace sluice::osu;
  Options options;
  CommandLine line("How long a CUDA device takes to copy to pinned memory and back.",
                   "osu_cuda_floor");
  line.sizes(&options.range, "smallest and largest copy in bytes (default 4:67108864)", 1);
  line.number("-i,--iterations", &options.iterations, "copies of each size (default 100)", 1,
              1 << 30);
  line.number("-D,--device", &options.device, "the device (default 0)", 0, 1024);
  line.parse(argc, argv);
  if (const std::string wrong = open_device(options.device); !wrong.empty()) {
    std::fprintf(stderr, "osu_cuda_floor: %s\n", wrong.c_str());
    return 1;
  }
  measure(options);
  return exit_status("osu_cuda_floor", true);
}
