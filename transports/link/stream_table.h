// SPDX-License-Identifier: BSD-3-Clause
//
// The streams of the teams that share a link, and what comes for teams that have none.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/base/status.h"
#include "transports/link/stream.h"
#include "transports/transport.h"

namespace sluice {

class StreamTable {
 public:
  explicit StreamTable(Link& link) : link_(link) {}

  // The team's stream, made if there is none.
  Stream& open(const TeamId& team);
  void close(Stream& stream);
  // nullptr if the team's stream is closed, or does not exist and is not to be made.
  Stream* find(const TeamId& team, bool make) {
    return latest_ != nullptr && latest_->team() == team ? latest_ : look_up(team, make);
  }
  bool empty() const { return streams_.empty(); }

  // The peer has aborted the team, which may have no stream yet.
  void take_abort(const TeamId& team, const std::string& cause);
  // The link has ended, or what waits for the connection has: ends all pending operations.
  void lose(const Status& status);

 private:
  struct TeamHash {
    size_t operator()(const TeamId& team) const {
      return (team.leader.low ^ team.leader.high) * 0x9E3779B97F4A7C15 + team.number;
    }
  };
  struct EarlyAbort {
    TeamId team;
    std::string cause;
  };

  Stream* look_up(const TeamId& team, bool make);

  Link& link_;
  std::unordered_map<TeamId, std::unique_ptr<Stream>, TeamHash> streams_;
  Stream* latest_ = nullptr;                         // the stream used last
  std::unordered_set<TeamId, TeamHash> dead_teams_;  // closed, but messages may still come
  // The latest aborts of teams that have no stream, because it is not open yet or never will be.
  std::vector<EarlyAbort> early_aborts_;
};

}  // namespace sluice
