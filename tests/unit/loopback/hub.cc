// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/loopback/hub.h"

#include <algorithm>
#include <utility>

#include "tests/unit/support/allocations.h"
#include "transports/pieces.h"

namespace sluice {
namespace {

// Bytes of the window that a message takes beside its payload; without them, empty messages would
// be unlimited.
constexpr size_t header_bytes = 56;

const auto everything = [](const Operation&) { return true; };

void copy(const Operation& from, const Operation& to) {
  size_t offset = 0;
  for (const Bytes& piece : from.pieces) {
    scatter(to.pieces, offset, piece.data, piece.size);
    offset += piece.size;
  }
}

}  // namespace

LoopbackEnd::~LoopbackEnd() {
  for (UnexpectedLoopback* unexpected = arrived.remove_all(); unexpected != nullptr;) {
    delete std::exchange(unexpected, unexpected->next);
  }
}

LoopbackEnd& LoopbackHub::State::end(const LoopbackKey& key) {
  auto [place, is_new] = ends.try_emplace(key);
  LoopbackEnd& made = place->second;
  if (is_new) {
    made.key = key;
    made.owner = &nodes[key.owner];
    made.peer = &nodes[key.peer];
    made.label = "process " + std::to_string(key.peer.low);
    made.other = &end({key.team, key.peer, key.owner});
    made.other->other = &made;
  }
  return made;
}

void LoopbackHub::State::close(LoopbackEnd& end) {
  withdraw(end);
  end.closed = true;
  if (!end.other->closed) return;
  ends.erase(LoopbackKey(end.other->key));
  ends.erase(LoopbackKey(end.key));
}

// Both return true if the operation is done. The hub has the memory that it needs, whatever its
// ranks lack.

bool LoopbackHub::State::send(LoopbackEnd& from, Operation* operation) {
  const testing::GrantedAllocations own;
  ++messages;
  operation->status = usable(from);
  if (operation->bytes > options.max_message) {
    operation->status = {Code::internal, "a message over max_message"};
  } else if (const auto theirs = from.call_check.ours(operation->tag)) {
    end_with_other_call(operation, *theirs, from.label);
  }
  if (!operation->status.ok()) return true;
  if (options.seed == 0) return deliver(from, operation);
  travelling.push_back({&from, operation});
  return false;
}

bool LoopbackHub::State::receive(LoopbackEnd& at, Operation* operation) {
  const testing::GrantedAllocations own;
  operation->status = at.aborted;
  if (const auto theirs = at.call_check.ours(operation->tag)) {
    end_with_other_call(operation, *theirs, at.label);
  }
  if (!operation->status.ok()) return true;
  const std::unique_ptr<UnexpectedLoopback> unexpected(at.arrived.remove(operation->tag));
  if (unexpected) {
    take(at, *unexpected, operation);
    return true;
  }
  operation->status = usable(at);
  if (!operation->status.ok()) return true;
  at.posted.insert(operation);
  return false;
}

void LoopbackHub::State::take(LoopbackEnd& at, UnexpectedLoopback& unexpected, Operation* receive) {
  if (!fits(*receive, unexpected.tag, unexpected.bytes)) {
    end_with_other_length(receive, unexpected.tag, unexpected.bytes, at.label);
  } else if (unexpected.copy) {
    scatter(receive->pieces, 0, unexpected.copy.get(), unexpected.bytes);
  } else {
    copy(*unexpected.sender, *receive);
  }
  if (unexpected.copy) {
    at.set_aside -= unexpected.bytes + header_bytes;
  } else {
    finish(*at.peer, unexpected.sender);
  }
}

bool LoopbackHub::State::deliver(LoopbackEnd& from, Operation* send) {
  LoopbackEnd& to = *from.other;
  if (!to.aborted.ok()) return true;  // dropped, as bytes to a socket that nobody reads
  if (to.call_check.theirs(send->tag)) {
    disagree(to, send->tag);
    return true;
  }
  Operation* receive = to.posted.remove(send->tag);
  if (receive == nullptr) return set_aside(to, send);
  if (fits(*receive, send->tag, send->bytes)) {
    copy(*send, *receive);
  } else {
    end_with_other_length(receive, send->tag, send->bytes, to.label);
  }
  finish(*to.owner, receive);
  return true;
}

// Ends all pending operations of a call that the peer says is another collective.
void LoopbackHub::State::disagree(LoopbackEnd& end, const Tag& theirs) {
  const auto of_call = [&](const Operation& each) { return each.tag.call == theirs.call; };
  for (Operation* pending : {end.posted.remove_if(of_call), take_sends(end, of_call)}) {
    while (pending != nullptr) {
      Operation* operation = std::exchange(pending, pending->next);
      end_with_other_call(operation, theirs, end.label);
      finish(*end.owner, operation);
    }
  }
}

bool LoopbackHub::State::set_aside(LoopbackEnd& to, Operation* send) {
  auto unexpected = std::make_unique<UnexpectedLoopback>();
  unexpected->tag = send->tag;
  unexpected->bytes = send->bytes;
  const bool room = to.set_aside + send->bytes + header_bytes <= options.window;
  if (room) {
    to.set_aside += send->bytes + header_bytes;
    unexpected->copy = std::make_unique<std::byte[]>(send->bytes);
    gather(unexpected->copy.get(), send->pieces, 0, send->bytes);
  } else {
    unexpected->sender = send;
  }
  to.arrived.insert(unexpected.release());
  return room;
}

bool LoopbackHub::State::under_way(const LoopbackNode& node) const {
  return std::any_of(travelling.begin(), travelling.end(), [&](const Travelling& each) {
    return each.from->owner == &node || each.from->peer == &node;
  });
}

// Moves about half of the messages in transit to or from this process, in any order.
void LoopbackHub::State::move_some(const LoopbackNode& node) {
  std::shuffle(travelling.begin(), travelling.end(), random);
  std::vector<Travelling> moving;
  std::erase_if(travelling, [&](const Travelling& each) {
    const bool moves =
        (each.from->owner == &node || each.from->peer == &node) && (random() & 1) != 0;
    if (moves) moving.push_back(each);
    return moves;
  });
  for (const Travelling& each : moving) {
    if (deliver(*each.from, each.send)) finish(*each.from->owner, each.send);
  }
}

// Removes this end's unfinished sends that match, linked by `next`.
template <typename Predicate>
Operation* LoopbackHub::State::take_sends(LoopbackEnd& from, Predicate matches) {
  Operation* taken = nullptr;
  std::erase_if(travelling, [&](const Travelling& each) {
    const bool takes = each.from == &from && matches(*each.send);
    if (takes) each.send->next = std::exchange(taken, each.send);
    return takes;
  });
  UnexpectedLoopback* waiting =
      from.other->arrived.remove_if([&](const UnexpectedLoopback& unexpected) {
        return unexpected.sender != nullptr && matches(*unexpected.sender);
      });
  while (waiting != nullptr) {
    const std::unique_ptr<UnexpectedLoopback> unexpected(std::exchange(waiting, waiting->next));
    unexpected->sender->next = std::exchange(taken, unexpected->sender);
  }
  return taken;
}

void LoopbackHub::State::withdraw(LoopbackEnd& end) {
  end.posted.remove_all();
  take_sends(end, everything);
}

void LoopbackHub::State::end_all(LoopbackEnd& end, const Status& status) {
  for (Operation* pending : {end.posted.remove_all(), take_sends(end, everything)}) {
    while (pending != nullptr) {
      Operation* operation = std::exchange(pending, pending->next);
      operation->status = status;
      finish(*end.owner, operation);
    }
  }
}

void LoopbackHub::State::abort(LoopbackEnd& end, const std::string& cause) {
  if (!end.aborted.ok()) return;
  end.aborted = {Code::aborted, cause};
  end_all(end, end.aborted);
}

void LoopbackHub::State::leave(LoopbackNode& node, LoopbackNode::Life life) {
  if (node.life != LoopbackNode::Life::present) return;
  node.life = life;
  for (auto& [key, end] : ends) {
    if (!usable(end).ok()) end_all(end, usable(end));
  }
}

Status LoopbackHub::State::usable(const LoopbackEnd& end) const {
  if (!end.aborted.ok()) return end.aborted;
  if (end.owner->life == LoopbackNode::Life::dead) return {Code::internal, "this rank was killed"};
  switch (end.peer->life) {
    case LoopbackNode::Life::present:
      return {};
    case LoopbackNode::Life::finished:
      return {Code::peer_lost, end.label + " finished while it was still expected"};
    case LoopbackNode::Life::dead:
      return {Code::peer_lost, end.label + " is gone"};
  }
  return {};
}

void LoopbackHub::State::finish(LoopbackNode& node, Operation* operation) {
  operation->queue->push(operation);
  ++node.events;
  node.changed.notify_all();
}

}  // namespace sluice
