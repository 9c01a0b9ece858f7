// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/shelf.h"

#include <algorithm>

#include "src/engine/new_team.h"

namespace sluice {

struct Shelf::Kept {
  uint64_t mark;
  std::unique_ptr<NewTeam> team;
};

Shelf::Shelf() = default;
Shelf::~Shelf() = default;

void Shelf::put(uint64_t mark, std::unique_ptr<NewTeam> team) {
  std::unique_ptr<NewTeam> oldest;  // destroyed after the unlock
  const std::lock_guard lock(mutex_);
  if (kept_.size() == most) {
    oldest = std::move(kept_.front().team);
    kept_.erase(kept_.begin());
  }
  kept_.push_back({mark, std::move(team)});
}

std::unique_ptr<NewTeam> Shelf::take(uint64_t mark, uint32_t rank, uint32_t size) {
  const std::lock_guard lock(mutex_);
  auto found = kept_.end();
  for (auto each = kept_.begin(); each != kept_.end(); ++each) {
    if (each->mark != mark || each->team->rank() != rank || each->team->size() != size) continue;
    if (found == kept_.end() || each->team->id() < found->team->id()) found = each;
  }
  if (found == kept_.end()) return nullptr;
  std::unique_ptr<NewTeam> team = std::move(found->team);
  kept_.erase(found);
  return team;
}

void Shelf::drop(uint64_t mark, uint32_t rank, uint32_t size, const TeamId& last) {
  std::vector<Kept> dropped;  // destroyed after the unlock
  const std::lock_guard lock(mutex_);
  const auto stays = [&](const Kept& each) {
    return each.mark != mark || each.team->rank() != rank || each.team->size() != size ||
           each.team->id() > last;
  };
  const auto out = std::stable_partition(kept_.begin(), kept_.end(), stays);
  std::move(out, kept_.end(), std::back_inserter(dropped));
  kept_.erase(out, kept_.end());
}

void Shelf::clear() {
  std::vector<Kept> all;  // destroyed after the unlock
  const std::lock_guard lock(mutex_);
  all.swap(kept_);
}

}  // namespace sluice
