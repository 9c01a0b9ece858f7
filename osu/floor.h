// SPDX-License-Identifier: BSD-3-Clause
//
// Shared code of the programs that measure the lower bound that sockets and memory set
// (osu_*_floor): they start their own processes, without MPI, and pin each to a processor.
#pragma once

#include <functional>

namespace sluice::osu {

// Prints what failed and strerror(errno), then exits.
[[noreturn]] void fail(const char* what);

// Pins the caller to the n-th of its allowed processors, modulo their number. `of` is the number of
// processes; returns false if there are fewer processors, so that some are shared.
bool take_processor(int n, int of);

// Runs `body` with 0 to count - 1: 0 in this process, the others in children. Returns true if all
// children exit with status 0.
bool run_processes(int count, const std::function<void(int number)>& body);

}  // namespace sluice::osu
