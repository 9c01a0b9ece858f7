// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <utility>

#include "tests/unit/loopback/hub.h"

namespace sluice {
namespace {

using State = LoopbackHub::State;
using Lock = std::unique_lock<std::mutex>;

class LoopbackChannel : public Channel {
 public:
  LoopbackChannel(std::shared_ptr<State> state, LoopbackEnd* end)
      : state_(std::move(state)), end_(end) {}
  ~LoopbackChannel() override {
    const Lock lock(state_->lock);
    state_->close(*end_);
  }

  bool post_send(Operation* operation) override {
    const Lock lock(state_->lock);
    return state_->send(*end_, operation);
  }
  bool post_recv(Operation* operation) override {
    const Lock lock(state_->lock);
    return state_->receive(*end_, operation);
  }
  void withdraw() override {
    const Lock lock(state_->lock);
    state_->withdraw(*end_);
  }
  void abort(const std::string& cause) override {
    const Lock lock(state_->lock);
    state_->abort(*end_->other, cause);
  }
  Status aborted_by_peer() override {
    const Lock lock(state_->lock);
    return end_->aborted;
  }
  const char* carrier() const override { return "loopback"; }

 private:
  const std::shared_ptr<State> state_;
  LoopbackEnd* const end_;
};

class LoopbackEndpoint : public Endpoint {
 public:
  LoopbackEndpoint(std::shared_ptr<State> state, const ProcessId& self)
      : state_(std::move(state)), self_(self), node_(&state_->nodes[self]) {}
  ~LoopbackEndpoint() override { LoopbackEndpoint::say_bye(); }

  const char* name() const override { return "loopback"; }
  Caps caps() const override { return {state_->options.max_message}; }

  std::vector<std::byte> address() const override {
    const State* hub = state_.get();
    std::vector<std::byte> address(sizeof(hub));
    std::memcpy(address.data(), &hub, sizeof(hub));
    return address;
  }

  Result<std::unique_ptr<Channel>> open(const TeamId& team, const Peer& peer) override {
    const Lock lock(state_->lock);
    if (peer.address != address() || !state_->nodes.contains(peer.process)) {
      return Status(Code::invalid, peer.label + " is not of this loopback hub");
    }
    if (peer.process == self_) return Status(Code::invalid, "a rank has no link to itself");
    LoopbackEnd& end = state_->end({team, self_, peer.process});
    end.label = peer.label;
    return std::unique_ptr<Channel>(std::make_unique<LoopbackChannel>(state_, &end));
  }

  bool can_connect() override { return true; }
  bool progress() override {
    const Lock lock(state_->lock);
    state_->move_some(*node_);
    return std::exchange(node_->seen, node_->events) != node_->events;
  }

  void wait(std::chrono::microseconds limit) override {
    Lock lock(state_->lock);
    const uint64_t before = node_->seen;
    node_->changed.wait_for(lock, limit,
                            [&] { return node_->events != before || state_->under_way(*node_); });
  }

  void say_bye() override {
    const Lock lock(state_->lock);
    state_->leave(*node_, LoopbackNode::Life::finished);
  }

 private:
  const std::shared_ptr<State> state_;
  const ProcessId self_;
  LoopbackNode* const node_;
};

}  // namespace

LoopbackHub::LoopbackHub(const LoopbackOptions& options)
    : state_(std::make_shared<State>(options)) {}

LoopbackHub::~LoopbackHub() = default;

std::unique_ptr<Endpoint> LoopbackHub::endpoint(const ProcessId& self) {
  const Lock lock(state_->lock);
  return std::make_unique<LoopbackEndpoint>(state_, self);
}

void LoopbackHub::kill(const ProcessId& process) {
  const Lock lock(state_->lock);
  state_->leave(state_->nodes[process], LoopbackNode::Life::dead);
}

uint64_t LoopbackHub::messages() const {
  const Lock lock(state_->lock);
  return state_->messages;
}

}  // namespace sluice
