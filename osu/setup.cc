// SPDX-License-Identifier: BSD-3-Clause
//
// osu_setup: the cost of a new communicator: MPI_Comm_dup of MPI_COMM_WORLD and its first
// MPI_Allreduce, of 8 bytes. In turn with that, it times a duplicate whose first MPI_Allreduce is
// the MPI library's own, bypassing a preloaded Sluice. Communicators live until the end, or are
// freed after each timing (--free). All ranks meet in MPI's own barrier before each timing.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "osu/command_line.h"

namespace {

struct Options {
  int rounds = 40;
  bool free = false;
};

// Looks a function up in the MPI library itself, bypassing Sluice.
template <typename Function>
Function* in_mpi(Function*, const char* name) {
  static void* const library = [] {
    Dl_info mpi{};
    dladdr(dlsym(RTLD_DEFAULT, "PMPI_Comm_size"), &mpi);  // Sluice does not define this one
    return dlopen(mpi.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  void* const found = library ? dlsym(library, name) : nullptr;
  if (!found) MPI_Abort(MPI_COMM_WORLD, 1);
  return reinterpret_cast<Function*>(found);
}

// Microseconds, on the slowest rank.
double time(const Options& options, decltype(&MPI_Allreduce) allreduce) {
  static const auto barrier = in_mpi(&PMPI_Barrier, "PMPI_Barrier");
  static const auto most = in_mpi(&PMPI_Allreduce, "PMPI_Allreduce");
  barrier(MPI_COMM_WORLD);
  const double begun = MPI_Wtime();
  MPI_Comm made;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  double one = 1, sum = 0;
  allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, made);
  double took = (MPI_Wtime() - begun) * 1e6;
  most(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (options.free) MPI_Comm_free(&made);
  return took;
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void measure(const Options& options) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto own = in_mpi(&PMPI_Allreduce, "PMPI_Allreduce");
  const double first = time(options, &MPI_Allreduce);
  std::vector<double> all, owns;
  for (int round = 0; round < options.rounds; ++round) {
    owns.push_back(time(options, own));
    all.push_back(time(options, &MPI_Allreduce));
  }
  if (rank != 0) return;
  std::printf("# MPI_Comm_dup and first MPI_Allreduce, us, median of %d; %s\n", options.rounds,
              options.free ? "freed at once" : "all live");
  std::printf("%-8s%12s%12s%12s%12s\n", "# ranks", "first of all", "later", "MPI's own", "ratio");
  std::printf("%-8d%12.1f%12.1f%12.1f%12.2f\n", size, first, median(all), median(owns),
              median(all) / median(owns));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  sluice::osu::CommandLine line("What a new communicator costs, with its first MPI_Allreduce.",
                                "osu_setup");
  line.number("-r,--rounds", &options.rounds, "communicators of each kind (default 40)", 1, 1000);
  line.flag("-f,--free", &options.free, "free each when it was timed");
  line.parse(argc, argv);
  MPI_Init(&argc, &argv);
  measure(options);
  MPI_Finalize();
  return sluice::osu::exit_status("osu_setup", true);
}
