// SPDX-License-Identifier: BSD-3-Clause
//
// osu_<function>: the makefile sets OSU_FUNCTION.
#include "osu/bench.h"

int main(int argc, char** argv) { return sluice::osu::run_benchmark(OSU_FUNCTION, argc, argv); }
