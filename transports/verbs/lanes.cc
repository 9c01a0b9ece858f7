// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/lanes.h"

#include <algorithm>

namespace sluice {

void VerbsLanes::describe(VerbsEnd* end) const {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i]) end->lanes[i] = lanes_[i]->address();
  }
}

void VerbsLanes::connect(const VerbsEnd& peer) {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i] && !lanes_[i]->connect(peer.lanes[i])) lanes_[i].reset();
  }
}

bool VerbsLanes::empty() const {
  return std::ranges::none_of(lanes_, [](const Lane& lane) { return bool(lane); });
}

bool VerbsLanes::may_sleep() {
  bool may = true;
  for (const Lane& lane : lanes_) may &= !lane || lane->may_sleep();
  return may;
}

bool VerbsLanes::lend(const Operation& send, Bytes words, LentMessage* lent) {
  for (size_t tried = 0; tried < lanes_.size(); ++tried) {
    const Lane& lane = lanes_[next_++ % lanes_.size()];
    if (lane && lane->works()) return lane->lend(send, words, lent);
  }
  return false;
}

PeerMemory::Get VerbsLanes::get(const LentMessage& lent, Operation* receive, Getter* getter) {
  for (const Lane& lane : lanes_) {
    if (lane && lane->reads_for(lent)) return lane->get(lent, receive, getter);
  }
  return Get::refused;
}

bool VerbsLanes::report() {
  bool any = false;
  for (const Lane& lane : lanes_) any |= lane && lane->report();
  return any;
}

void VerbsLanes::stop(Operation* receive) {
  for (const Lane& lane : lanes_) {
    if (lane) lane->stop(receive);
  }
}

void VerbsLanes::end() {
  for (uint32_t i = 0; i < lanes_.size(); ++i) end(i);
}

void VerbsLanes::end(uint32_t part) {
  if (part < lanes_.size() && lanes_[part]) lanes_[part]->end();
}

std::optional<uint32_t> VerbsLanes::next_broken() {
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i] && lanes_[i]->has_broken()) return i;
  }
  return std::nullopt;
}

void VerbsLanes::keep(const Operation& send) {
  for (const Lane& lane : lanes_) {
    if (lane) lane->keep(send);
  }
}

}  // namespace sluice
