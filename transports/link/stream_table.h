// SPDX-License-Identifier: BSD-3-Clause
//
// The streams of the teams that share a link, and what comes for teams that have none.
//
// A peer may be ahead: it sends for a team that this process has yet to open. Its first frame makes
// the stream, and messages wait there. Nothing says that this process will ever open it, so all
// such streams of a link together may take only so much memory; a peer that sends more ends the
// link. In most programs a peer is ahead by one team; one that calls on a team after another, where
// it only sends, may be ahead by thousands.
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
  explicit StreamTable(const StreamContext& context) : context_(context) {}

  // The team's stream, made if there is none. From now on this process has opened it.
  Stream& open(const TeamId& team);
  void close(Stream& stream);
  // nullptr if the team's stream is closed, or does not exist and is not to be made, or may not:
  // then the link has failed.
  Stream* find(const TeamId& team, bool make) {
    return latest_ != nullptr && latest_->team() == team ? latest_ : look_up(team, make);
  }
  bool empty() const { return streams_.empty(); }
  // A stream that is not open is about to take so many bytes more. False if that is too much: the
  // link has failed.
  bool charge(Stream& stream, size_t bytes);

  // The peer has aborted the team, which may have no stream yet.
  void take_abort(const TeamId& team, const std::string& cause);
  // What waits for the connection has ended, or the link has: see Stream.
  void end_pending(const Status& status);
  void lose(const Status& status);

 private:
  struct TeamHash {
    size_t operator()(const TeamId& team) const {
      const uint64_t own = team.number + (uint64_t{team.part} << 32);
      return ((team.leader.low ^ team.leader.high) + own) * 0x9E3779B97F4A7C15;
    }
  };
  struct EarlyAbort {
    TeamId team;
    std::string cause;
  };

  Stream* look_up(const TeamId& team, bool make);
  Stream& make(const TeamId& team);
  size_t most_unopened() const;

  const StreamContext context_;
  std::unordered_map<TeamId, std::unique_ptr<Stream>, TeamHash> streams_;
  Stream* latest_ = nullptr;                         // the stream used last
  size_t unopened_ = 0;                              // bytes that streams take that are not open
  std::unordered_set<TeamId, TeamHash> dead_teams_;  // closed, but messages may still come
  // The latest aborts of teams that have no stream, because it is not open yet or never will be.
  std::vector<EarlyAbort> early_aborts_;
};

}  // namespace sluice
