// SPDX-License-Identifier: BSD-3-Clause
//
// Runs ranks as threads of one process. Each rank has a Process of its own. A Bootstrap over shared
// memory replaces MPI.
#pragma once

#include <functional>
#include <memory>

#include "src/engine/team.h"

namespace sluice::testing {

// Makes the endpoint of a rank.
using EndpointMaker = std::function<std::unique_ptr<Endpoint>(Rank rank, const ProcessId& id)>;

// Changes a rank's Process (settings, version) before its team is set up.
using Adjust = std::function<void(Rank rank, Process& process)>;

// Returns the hints that a rank gives its communicator.
using Hinter = std::function<Hints(Rank rank)>;

// The state that a rank's `body` gets. `team` is null if MPI keeps the communicator, or if set-up
// failed; then `formed` holds the error.
struct Member {
  Process& process;
  Rank rank;
  Rank size;
  Team* team;
  Status formed;
  Hints hints;  // in force
  Bootstrap& bootstrap;
};
using Body = std::function<void(Member& member)>;

// Runs `body` on `ranks` threads and waits for all. absent: a rank that does not take part in
// set-up (Team::report_failed_rank).
void on_ranks(Rank ranks, const EndpointMaker& endpoints, const Adjust& adjust, const Body& body,
              const Hinter& hints = {}, Rank absent = ~Rank{0});

}  // namespace sluice::testing
