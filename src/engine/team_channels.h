// SPDX-License-Identifier: BSD-3-Clause
//
// A team's channels to its peers (Channels in execution.h).
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/engine/agreement.h"
#include "src/engine/execution.h"
#include "transports/transport.h"

namespace sluice {

// The peers of a team, which may connect as long as it exists, and its channels to them, opened
// when a plan first needs them.
class TeamChannels final : public Channels {
 public:
  TeamChannels(Endpoint* endpoint, TeamId id, std::vector<Peer> peers)
      : endpoint_(endpoint),
        id_(id),
        peers_(std::make_shared<const std::vector<Peer>>(std::move(peers))),
        channels_(peers_->size()) {
    if (endpoint_ != nullptr) met_ = endpoint_->expect(*peers_);
  }
  // Of another part of that team.
  TeamChannels(const TeamChannels& of, uint16_t part)
      : endpoint_(of.endpoint_),
        id_(of.id_),
        peers_(of.peers_),
        met_(of.met_),
        channels_(of.channels_.size()) {
    id_.part = part;
  }

  Result<Channel*> channel(Rank peer) override {
    if (!channels_[peer]) {
      auto opened = endpoint_->open(id_, (*peers_)[peer]);
      if (!opened.ok()) return opened.status();
      channels_[peer] = std::move(*opened);
    }
    return channels_[peer].get();
  }
  // Opens channels to all peers, or to those that this process has met, as far as it can. False if
  // memory was lacking for some.
  enum class Whom { all, met };
  bool open_to(Whom whom, Rank self) {
    bool all = true;
    for (Rank peer = 0; peer < size(); ++peer) {
      if (peer == self || (whom == Whom::met && !endpoint_->has_met(process(peer)))) {
        continue;
      }
      try {
        all &= channel(peer).status().code() != Code::memory;
      } catch (const std::bad_alloc&) {  // other ranks may have a channel to it
        all = false;
      }
    }
    return all;
  }
  // False if memory was lacking for some.
  bool abort(const std::string& cause) {
    bool all = true;
    for (const auto& channel : channels_) {
      try {
        if (channel) channel->abort(cause);
      } catch (const std::bad_alloc&) {
        all = false;
      }
    }
    return all;
  }
  // Code::aborted with the cause, if any peer has sent an ABORT.
  Status aborted_by_peers() {
    for (Rank peer = 0; peer < size(); ++peer) {
      if (!channels_[peer]) continue;
      const Status aborted = channels_[peer]->aborted_by_peer();
      if (!aborted.ok()) return aborted.with(describe(peer));
    }
    return {};
  }
  // The error of a link that has failed, if any has.
  Status failure() {
    for (Rank peer = 0; peer < size(); ++peer) {
      if (!channels_[peer]) continue;
      const Status failed = channels_[peer]->failure();
      if (!failed.ok()) return failed.with(describe(peer));
    }
    return {};
  }
  bool abort_sent() const {
    return std::ranges::all_of(
        channels_, [](const auto& channel) { return !channel || channel->abort_sent(); });
  }
  // What carries the team's messages, for people: "tcp"; "shm+tcp" if its channels differ.
  std::string carrier() const {
    std::set<std::string> names;
    for (const auto& channel : channels_) {
      if (channel) names.insert(channel->carrier());
    }
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : "+") + name;
    return text.empty() ? endpoint_->name() : text;
  }
  const ProcessId& process(Rank peer) const { return (*peers_)[peer].process; }
  Rank size() const { return static_cast<Rank>(channels_.size()); }
  const TeamId& id() const { return id_; }
  void set_id(const TeamId& id) { id_ = id; }
  std::string describe(Rank peer) const {
    return "rank " + std::to_string(peer) + " (" + (*peers_)[peer].label + ")";
  }

 private:
  Endpoint* endpoint_;
  TeamId id_;
  std::shared_ptr<const std::vector<Peer>> peers_;
  std::shared_ptr<const void> met_;
  std::vector<std::unique_ptr<Channel>> channels_;
};

}  // namespace sluice
