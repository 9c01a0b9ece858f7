// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/progress_way.h"

#include <atomic>

#include "src/mpi/pending_calls.h"
#include "src/mpi/progress_thread.h"
#include "src/mpi/real.h"

namespace sluice {
namespace {

constinit std::atomic<PendingCalls*> driven{nullptr};

// Called by MPI in each turn of its waits and tests, by any thread. Returns the number of events:
// without any, MPI may yield the processor.
int drive_pending() {
  PendingCalls* const calls = driven.load(std::memory_order_acquire);
  return calls && calls->any() ? calls->drive() : 0;
}

// (Functions of Open MPI's for its own parts, the same in 4.1 to 6.)
using OpenMpiHook = int();
using OpenMpiRegister = int(OpenMpiHook*);

OpenMpiRegister* find_registration(const char* name) {
  return reinterpret_cast<OpenMpiRegister*>(find_data(name));
}

constexpr const char* registering = "opal_progress_register";
constexpr const char* unregistering = "opal_progress_unregister";

}  // namespace

ProgressWay find_progress_way() {
  const bool has_hook = find_registration(registering) && find_registration(unregistering);
  return has_hook ? ProgressWay::open_mpi_hook : ProgressWay::thread;
}

const char* to_string(ProgressWay way) {
  switch (way) {
    case ProgressWay::open_mpi_hook:
      return "hook";
    case ProgressWay::thread:
      return "thread";
    case ProgressWay::none:
      break;
  }
  return "none";
}

bool begin_progress(ProgressWay way, PendingCalls& calls, Process& process) {
  driven.store(&calls, std::memory_order_release);
  switch (way) {
    case ProgressWay::open_mpi_hook:
      return find_registration(registering)(drive_pending) == 0;
    case ProgressWay::thread:
      return ProgressThread::begin(calls, process);
    case ProgressWay::none:
      break;
  }
  return false;
}

void end_progress(ProgressWay way) {
  if (way == ProgressWay::open_mpi_hook) find_registration(unregistering)(drive_pending);
  if (way == ProgressWay::thread) ProgressThread::end();
  driven.store(nullptr, std::memory_order_release);
}

}  // namespace sluice
