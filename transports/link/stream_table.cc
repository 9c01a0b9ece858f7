// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/stream_table.h"

#include <algorithm>
#include <string>
#include <utility>

namespace sluice {
namespace {

constexpr size_t max_early_aborts = 64;
// What streams that are not open may take: so many teams' full windows, or many thousand teams with
// a few small messages each.
constexpr size_t most_windows = 32, least_bytes = size_t{64} << 20;

}  // namespace

Stream& StreamTable::open(const TeamId& team) {
  Stream& stream = make(team);
  unopened_ -= std::exchange(stream.unopened, 0);
  return stream;
}

Stream& StreamTable::make(const TeamId& team) {
  if (latest_ != nullptr && latest_->team() == team) return *latest_;
  auto found = streams_.find(team);
  if (found == streams_.end()) {
    found = streams_.emplace(team, std::make_unique<Stream>(context_, *this, team)).first;
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
  const auto found = streams_.find(team);
  if (found != streams_.end()) return latest_ = found->second.get();
  if (!make) return nullptr;
  Stream& made = this->make(team);
  return charge(made, sizeof(Stream)) ? &made : nullptr;
}

size_t StreamTable::most_unopened() const {
  return std::max(most_windows * context_.shared.options.window, least_bytes);
}

// What waits in them is not kept for a peer that does so.
bool StreamTable::charge(Stream& stream, size_t bytes) {
  stream.unopened += bytes;
  unopened_ += bytes;
  const size_t most = most_unopened();
  if (unopened_ <= most) return true;
  context_.link.fail_for_sent("more than " + std::to_string(most) +
                              " bytes for teams that this process has not opened");
  for (auto& [team, each] : streams_) {
    if (each->unopened > 0) each->drop_arrived();
  }
  return false;
}

void StreamTable::take_abort(const TeamId& team, const std::string& cause) {
  if (dead_teams_.contains(team)) return;
  if (Stream* const to = find(team, false)) return to->aborted(cause);
  if (early_aborts_.size() == max_early_aborts) early_aborts_.erase(early_aborts_.begin());
  early_aborts_.push_back({team, cause});
}

void StreamTable::end_pending(const Status& status) {
  for (auto& [team, stream] : streams_) stream->end_pending(status);
}

void StreamTable::lose(const Status& status) {
  for (auto& [team, stream] : streams_) stream->lose(status);
}

}  // namespace sluice
