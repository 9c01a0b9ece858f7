// SPDX-License-Identifier: BSD-3-Clause
//
// The composition root: what exists once in a process. It is made at the first collective, or with
// the first hints. It connects the settings, the transport, the engine's Process and MPI's
// progress.
#pragma once

#include <atomic>
#include <chrono>

#include "src/base/setting_sources.h"
#include "src/engine/team.h"
#include "src/host/locality.h"
#include "src/ipc/device_slabs.h"
#include "src/mpi/pending_calls.h"
#include "src/mpi/progress_request.h"
#include "src/mpi/real.h"
#include "src/mpi/statistics_report.h"
#include "src/nccl/device_group.h"

namespace sluice {

// True if MPI does every call: with SLUICE_ENABLE=off, and, on every rank, from the entry of
// MPI_Finalize on. In MPI_Finalize libraries still call collectives from callbacks, whose order
// differs between ranks.
extern constinit std::atomic<bool> all_pass;
// Sets it. Returns what it was.
bool pass_all();

// Variables and files of settings, as they were when first asked for. May throw std::bad_alloc.
const SettingSources& setting_sources();

// Whether SLUICE_ENABLE is off. Reads it once in a process and sets all_pass. Called by MPI_Init,
// or by the first intercepted call if the program's MPI_Init did not go through Sluice.
bool is_switched_off();

class Runtime {
 public:
  // Made by the first caller, with local functions of MPI only. MPI must be running. Never
  // destroyed, since programs call MPI from exit handlers.
  static Runtime& get();
  // nullptr if it was never needed.
  static Runtime* get_if_made();

  Process& process() { return process_; }
  PendingCalls& pending() { return pending_; }
  DeviceGroups& device_groups() { return device_groups_; }
  DeviceSlabs& device_slabs() { return device_slabs_; }
  // Whether Sluice may carry calls in flight. Equal on all ranks of a team.
  bool is_nonblocking_carried() const {
    return pending_.way() != ProgressWay::none && process_.knobs.nonblocking != "off";
  }
  // What is wrong with the settings, if anything. No team can be set up then: the set-up fails on
  // all ranks of the communicator.
  const Status& failure() const { return failure_; }

  // To be called when a communicator has got a team, and when a call has failed; for a file of
  // statistics.
  void note_team(MPI_Comm comm) { statistics_report_.note_team(comm); }
  void note_failure(const std::string& why) { statistics_report_.write_of_rank(world_rank_, why); }

  // Called once, when MPI_Finalize begins and all teams have ended: prints statistics, says BYE to
  // peers.
  void close();
  // Called when MPI_Finalize has returned: no peer needs this process any more.
  void disconnect() {
    device_groups_.close();
    device_slabs_.end();
    process_.endpoint.reset();
  }

 private:
  Runtime();
  Status configure();
  void progress_mpi();
  void warn_of_settings() const;
  Status open_endpoint();
  void read_choices();
  void write_choices();
  Status without_tls(const Status& why) const;
  void report_statistics();
  void print_statistics();
  std::string links_report() const;

  const std::chrono::steady_clock::time_point made_at_ = std::chrono::steady_clock::now();
  int world_rank_ = 0;
  bool writes_choices_ = false;
  ProgressRequest progress_;
  Locator locator_;
  Process process_;
  PendingCalls pending_{process_};
  DeviceGroups device_groups_;
  DeviceSlabs device_slabs_;
  StatisticsReport statistics_report_{process_, made_at_};
  Status failure_;
};

}  // namespace sluice
