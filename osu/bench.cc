// SPDX-License-Identifier: BSD-3-Clause
#include "osu/bench.h"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "osu/command_line.h"
#include "osu/options.h"
#include "osu/trial.h"

namespace sluice::osu {
namespace {

struct World {
  int rank = 0;
  int size = 1;
};

// The result of a trial over all ranks, in microseconds. Complete on rank 0; `valid` on all ranks.
struct Outcome {
  double average = 0, fastest = 0, slowest = 0;
  std::vector<double> percentiles;
  bool valid = true;
};

class Benchmark {
 public:
  Benchmark(const Function& function, const Options& options, World world)
      : function_(function), options_(options), world_(world) {}

  // Returns false if results were wrong.
  bool run();

 private:
  bool run_type(const ElementType& type);
  bool run_size(const ElementType& type, size_t count);
  bool within_limits(const ElementType& type, size_t count) const;
  Outcome measure(Trial* trial, size_t bytes);
  bool verify(Trial* trial, size_t bytes);
  Outcome summarize(const std::vector<double>& samples) const;
  std::vector<double> percentiles(std::vector<double> samples) const;
  void print_columns() const;
  void print_row(size_t bytes, const Outcome& outcome) const;
  bool sized() const { return function_.flow.moves_data(); }
  bool speaks() const { return world_.rank == 0; }

  const Function& function_;
  const Options& options_;
  World world_;
  uint32_t round_ = 0;
};

bool Benchmark::run() {
  if (speaks()) std::printf("\n%s\n", title(function_).c_str());
  if (!sized()) return run_type(*options_.types.front());
  return std::all_of(options_.types.begin(), options_.types.end(),
                     [this](const ElementType* type) { return run_type(*type); });
}

bool Benchmark::run_type(const ElementType& type) {
  if (speaks() && sized()) std::printf("# Datatype: %s.\n", type.name);
  if (speaks()) print_columns();
  if (!sized()) return run_size(type, 0);
  for (size_t bytes = options_.min_bytes; bytes <= options_.max_bytes; bytes *= 2) {
    size_t count = bytes / type.bytes;
    if (count == 0) continue;
    if (!within_limits(type, count)) {
      if (speaks()) {
        std::fprintf(stderr, "osu_%s: stopped before %zu bytes: --mem-limit is %zu bytes a rank\n",
                     function_.name, bytes, options_.memory_limit);
      }
      return true;
    }
    if (!run_size(type, count)) return false;
  }
  return true;
}

bool Benchmark::within_limits(const ElementType& type, size_t count) const {
  size_t ranks = static_cast<size_t>(world_.size);
  return memory_of(function_, type, count, world_.size) <= options_.memory_limit &&
         count <= INT_MAX / ranks;  // MPI's displacements are ints
}

bool Benchmark::run_size(const ElementType& type, size_t count) {
  size_t bytes = count * type.bytes;
  auto trial = make_trial(function_, type, count, options_.buffers);
  Outcome outcome = measure(trial.get(), bytes);
  if (speaks()) print_row(bytes, outcome);
  return outcome.valid;
}

Outcome Benchmark::measure(Trial* trial, size_t bytes) {
  std::vector<double> samples;
  int iterations = options_.iterations_for(bytes);
  int calls = options_.validate ? options_.validation_warmup + 1 : 1;
  bool valid = true;
  for (int i = -options_.warmup_for(bytes); i < iterations && valid; ++i) {
    double latest = 0;
    for (int j = 0; j < calls && valid; ++j) {
      if (options_.validate) trial->prepare(++round_);
      if (sized()) MPI_Barrier(MPI_COMM_WORLD);
      latest = trial->call();
      if (options_.validate) valid = verify(trial, bytes);
    }
    if (i >= 0) samples.push_back(1e6 * latest);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  Outcome outcome = summarize(samples);
  outcome.valid = valid;
  return outcome;
}

// Whether the results are right on all ranks.
bool Benchmark::verify(Trial* trial, size_t bytes) {
  std::string wrong = trial->verify();
  if (!wrong.empty()) {
    std::fprintf(stderr, "osu_%s: %zu bytes, rank %d of %d, call %u: %s\n", function_.name, bytes,
                 world_.rank, world_.size, round_, wrong.c_str());
  }
  int good = wrong.empty() ? 1 : 0;
  int all_good = 0;
  MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all_good == 1;
}

Outcome Benchmark::summarize(const std::vector<double>& samples) const {
  double sum = 0;
  for (double sample : samples) sum += sample;
  double mine = samples.empty() ? 0 : sum / static_cast<double>(samples.size());
  Outcome outcome;
  MPI_Reduce(&mine, &outcome.fastest, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&mine, &outcome.slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&mine, &outcome.average, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  outcome.average /= world_.size;
  if (!options_.percentiles.empty()) outcome.percentiles = percentiles(samples);
  return outcome;
}

std::vector<double> Benchmark::percentiles(std::vector<double> samples) const {
  std::vector<double> averages(samples.size());
  MPI_Reduce(samples.data(), averages.data(), static_cast<int>(samples.size()), MPI_DOUBLE, MPI_SUM,
             0, MPI_COMM_WORLD);
  std::sort(averages.begin(), averages.end());
  std::vector<double> values;
  for (int percentile : options_.percentiles) {
    if (averages.empty()) break;
    double place = percentile / 100.0 * static_cast<double>(averages.size());
    size_t index = static_cast<size_t>(std::max(std::ceil(place) - 1, 0.0));
    values.push_back(averages[index] / world_.size);
  }
  return values;
}

void Benchmark::print_columns() const {
  if (sized()) {
    std::printf("%-10s%18s", "# Size", "Avg Latency(us)");
  } else {
    std::printf("# Avg Latency(us)");
  }
  if (options_.full) {
    std::printf("%18s%18s%12s", "Min Latency(us)", "Max Latency(us)", "Iterations");
  }
  if (options_.validate) std::printf("%18s", "Validation");
  for (int percentile : options_.percentiles) std::printf("  P%02d Tail Lat(us)", percentile);
  std::printf("\n");
  std::fflush(stdout);
}

void Benchmark::print_row(size_t bytes, const Outcome& outcome) const {
  if (sized()) {
    std::printf("%-10zu%18.2f", bytes, outcome.average);
  } else {
    std::printf("%17.2f", outcome.average);
  }
  if (options_.full) {
    std::printf("%18.2f%18.2f%12d", outcome.fastest, outcome.slowest,
                options_.iterations_for(bytes));
  }
  if (options_.validate) std::printf("%18s", outcome.valid ? "Pass" : "Fail");
  for (double value : outcome.percentiles) std::printf("%18.2f", value);
  std::printf("\n");
  std::fflush(stdout);
}

// Whether all ranks have what the buffers need; if not, one of those that have not says so.
bool prepare_device(const Function& function, World world) {
  MPI_Comm host;
  int number = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &number);
  MPI_Comm_free(&host);
  const std::string wrong = open_device(number);
  int mine = wrong.empty() ? world.size : world.rank, first = 0;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == world.rank) {
    std::fprintf(stderr, "osu_%s: -d: rank %d: %s\n", function.name, world.rank, wrong.c_str());
  }
  return first == world.size;
}

int run_parsed(const Function& function, const Parsed& parsed) {
  World world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  const bool needs_device = parsed.options && parsed.options->buffers.need_device();
  if (needs_device && !prepare_device(function, world)) return 1;
  if (parsed.options) return Benchmark(function, *parsed.options, world).run() ? 0 : 1;
  if (world.rank == 0) std::fputs(parsed.text.c_str(), parsed.status == 0 ? stdout : stderr);
  return parsed.status;
}

}  // namespace

int run_benchmark(const char* name, int argc, char** argv) {
  const Function* function = find_function(name);
  if (function == nullptr) {
    std::fprintf(stderr, "no MPI function is called %s here\n", name);
    return 1;
  }
  MPI_Init(&argc, &argv);
  int status = run_parsed(*function, parse_options(*function, argc, argv));
  MPI_Finalize();
  const std::string program = std::string("osu_") + name;
  return status == 0 ? exit_status(program.c_str(), true) : status;
}

}  // namespace sluice::osu
