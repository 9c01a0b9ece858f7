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

// A team before its communicator has it, and after that was freed.
class NewTeam : public Team {
 public:
  virtual const TeamId& id() const = 0;
  // Before anything else, where it was made with another.
  virtual void set_id(const TeamId& id) = 0;
  // share and heed are called once at most, by all ranks, and share first. They meet in
  // shared memory; nullptr: they don't.
  virtual Status share(std::unique_ptr<Arena> arena) = 0;
  // Hints that all ranks gave, and that make sense.
  virtual void heed(const Hints& hints) = 0;
  // A communicator of that mark (Bootstrap::mark) has it.
  virtual void set_mark(uint64_t mark) = 0;
  virtual uint64_t mark() const = 0;
  // Its communicator is no more; false if it can serve no other.
  virtual bool retire() = 0;
  // It serves another, of the same processes in the same order. Throws std::bad_alloc.
  virtual void serve(const std::string& name) = 0;
};

// hosts: as in Shape.
std::unique_ptr<NewTeam> make_new_team(Process& process, std::string name, Rank rank, TeamId id,
                                       std::vector<Peer> peers, std::vector<uint32_t> hosts);

}  // namespace sluice
