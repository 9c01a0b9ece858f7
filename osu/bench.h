// SPDX-License-Identifier: BSD-3-Clause
//
// The benchmark that all osu_<function> programs share. It measures one function over a range of
// sizes and types on MPI_COMM_WORLD, and prints in the format of the OSU Micro-Benchmarks.
//
// Before each timed call the ranks meet in MPI_Barrier (not when the barrier is measured). A
// latency is the average over a rank's timed calls, then over ranks. "Min" and "Max" are the
// averages of the fastest and the slowest rank.
#pragma once

namespace sluice::osu {

// main() of the program that measures the function `name`.
int run_benchmark(const char* name, int argc, char** argv);

}  // namespace sluice::osu
