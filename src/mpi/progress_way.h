// SPDX-License-Identifier: BSD-3-Clause
//
// How non-blocking collectives progress while the program is in a function of MPI's.
#pragma once

#include <cstdint>

namespace sluice {

class PendingCalls;
struct Process;

enum class ProgressWay : uint8_t {
  none,           // MPI keeps non-blocking collectives
  open_mpi_hook,  // a function that Open MPI's progress loop calls
  thread,         // one of Sluice's, where MPI offers nothing; it calls no MPI (progress_thread.h)
};

// What this process's MPI offers.
ProgressWay find_progress_way();
// For settings that ranks compare.
const char* to_string(ProgressWay way);

// From now on they are driven. False if that can't be had.
bool begin_progress(ProgressWay way, PendingCalls& calls, Process& process);
// No more.
void end_progress(ProgressWay way);

}  // namespace sluice
