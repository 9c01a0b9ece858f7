// SPDX-License-Identifier: BSD-3-Clause
//
// The interface between team set-up (team_setup.cc) and the team that it makes (team.cc).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/engine/hints.h"
#include "src/engine/team.h"

namespace sluice {

// A team before its communicator has it, and after that communicator was freed.
class NewTeam : public Team {
 public:
  virtual const TeamId& id() const = 0;
  // Replaces the id that the team was made with. To be called before all others, if at all.
  virtual void set_id(const TeamId& id) = 0;
  // All ranks call share and apply, each at most once, share first. share: the ranks join
  // the arena (blocks) and use it from then on; nullptr: they share no memory.
  virtual Status share(std::unique_ptr<Arena> arena) = 0;
  // Has the file of choices (outcomes.h) decide about calls: all ranks have read the same one. To
  // be called before the first call, if at all.
  virtual void use_outcomes() = 0;
  // Applies hints, which all ranks gave and which are valid.
  virtual void apply(const Hints& hints) = 0;
  // group_fingerprint: of the communicator that has the team (Bootstrap::group_fingerprint).
  // sees_devices: whether a rank does (Hello); equal on all ranks.
  virtual void set_communicator(uint64_t group_fingerprint, bool sees_devices) = 0;
  virtual uint64_t group_fingerprint() const = 0;
  // To be called when the communicator is freed. False if the team can't serve another.
  virtual bool retire() = 0;
  // Prepares the team for another communicator, of the same processes in the same order. Throws
  // std::bad_alloc.
  virtual void serve(const std::string& name) = 0;
};

// hosts: as in Shape.
std::unique_ptr<NewTeam> make_new_team(Process& process, std::string name, Rank rank, TeamId id,
                                       std::vector<Peer> peers, std::vector<uint32_t> hosts);

}  // namespace sluice
