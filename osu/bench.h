// SPDX-License-Identifier: BSD-3-Clause
//
// The benchmark that all programs share: measures one function over a range of sizes and types, on
// MPI_COMM_WORLD, and prints what the OSU Micro-Benchmarks print.
//
// Between the timed calls ranks meet in MPI_Barrier. A latency is the average over a rank's timed
// calls, and over ranks; "Min" and "Max" are the fastest and the slowest rank's averages.
#pragma once

namespace sluice::osu {

// main() of the program that measures the function of this name.
int run_benchmark(const char* name, int argc, char** argv);

}  // namespace sluice::osu
