// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks as threads of one process: each with a Process of its own, joined by a Bootstrap over
// shared memory instead of MPI.
#pragma once

#include <functional>
#include <memory>

#include "src/engine/team.h"

namespace sluice::testing {

// Makes the endpoint of a rank.
using EndpointMaker = std::function<std::unique_ptr<Endpoint>(Rank rank, const ProcessId& id)>;

// Changes a rank's Process before its team is formed: settings, version.
using Adjust = std::function<void(Rank rank, Process& process)>;

// What a rank gives its communicator as hints.
using Hinter = std::function<Hints(Rank rank)>;

// What a rank runs. The team may be null where MPI keeps the communicator; `formed` says why there
// is none where forming failed.
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

// Runs `body` on `ranks` threads and waits for all. absent: a rank that stays away
// (Team::stay_away).
void on_ranks(Rank ranks, const EndpointMaker& endpoints, const Adjust& adjust, const Body& body,
              const Hinter& hints = {}, Rank absent = ~Rank{0});

}  // namespace sluice::testing
