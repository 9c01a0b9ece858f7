// SPDX-License-Identifier: BSD-3-Clause
//
// What goes on between the forming of teams (forming.cc) and the team that comes of it (team.cc).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/engine/hints.h"
#include "src/engine/team.h"

namespace sluice {

// A team that its program has not got yet. Each of these is called once at most, by all ranks,
// share first.
class NewTeam : public Team {
 public:
  // They meet in shared memory; nullptr: they don't.
  virtual Status share(std::unique_ptr<Arena> arena) = 0;
  // Hints that all ranks gave, and that make sense.
  virtual void heed(const Hints& hints) = 0;
};

// hosts: as in Shape.
std::unique_ptr<NewTeam> make_new_team(Process& process, std::string name, Rank rank, TeamId id,
                                       std::vector<Peer> peers, std::vector<uint32_t> hosts);

}  // namespace sluice
