// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/stream_table.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr size_t max_early_aborts = 64;

}  // namespace

Stream& StreamTable::open(const TeamId& team) {
  if (latest_ != nullptr && latest_->team() == team) return *latest_;
  auto found = streams_.find(team);
  if (found == streams_.end()) {
    found = streams_.emplace(team, std::make_unique<Stream>(link_, team)).first;
    const auto early = std::ranges::find(early_aborts_, team, &EarlyAbort::team);
    if (early != early_aborts_.end()) {
      found->second->aborted(early->cause);
      early_aborts_.erase(early);
    }
  }
  latest_ = found->second.get();
  return *latest_;
}

void StreamTable::close(Stream& stream) {
  if (stream.left_open()) dead_teams_.insert(stream.team());
  if (latest_ == &stream) latest_ = nullptr;
  streams_.erase(TeamId(stream.team()));
}

Stream* StreamTable::look_up(const TeamId& team, bool make) {
  if (dead_teams_.contains(team)) return nullptr;
  if (make) return &open(team);
  const auto found = streams_.find(team);
  return found == streams_.end() ? nullptr : found->second.get();
}

void StreamTable::take_abort(const TeamId& team, const std::string& cause) {
  if (dead_teams_.contains(team)) return;
  if (Stream* const to = find(team, false)) return to->aborted(cause);
  if (early_aborts_.size() == max_early_aborts) early_aborts_.erase(early_aborts_.begin());
  early_aborts_.push_back({team, cause});
}

void StreamTable::lose(const Status& status) {
  for (auto& [team, stream] : streams_) stream->lose(status);
}

}  // namespace sluice
