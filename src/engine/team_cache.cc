// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/team_cache.h"

#include <algorithm>
#include <utility>

#include "src/engine/new_team.h"

namespace sluice {

struct TeamCache::Kept {
  uint64_t group_fingerprint;
  std::unique_ptr<NewTeam> team;
};

TeamCache::TeamCache() = default;
TeamCache::~TeamCache() = default;

void TeamCache::put(uint64_t group_fingerprint, std::unique_ptr<NewTeam> team) {
  std::unique_ptr<NewTeam> oldest;  // destroyed after the unlock
  const std::lock_guard lock(mutex_);
  if (kept_.size() == most) {
    oldest = std::move(kept_.front().team);
    kept_.erase(kept_.begin());
  }
  kept_.push_back({group_fingerprint, std::move(team)});
}

std::unique_ptr<NewTeam> TeamCache::remove(uint64_t group_fingerprint, uint32_t rank,
                                           uint32_t size) {
  const std::lock_guard lock(mutex_);
  auto found = kept_.end();
  for (auto each = kept_.begin(); each != kept_.end(); ++each) {
    if (each->group_fingerprint != group_fingerprint || each->team->rank() != rank ||
        each->team->size() != size)
      continue;
    if (found == kept_.end() || each->team->id() < found->team->id()) found = each;
  }
  if (found == kept_.end()) return nullptr;
  std::unique_ptr<NewTeam> team = std::move(found->team);
  kept_.erase(found);
  return team;
}

void TeamCache::drop(uint64_t group_fingerprint, uint32_t rank, uint32_t size, const TeamId& last) {
  std::vector<Kept> dropped;  // destroyed after the unlock
  const std::lock_guard lock(mutex_);
  const auto stays = [&](const Kept& each) {
    return each.group_fingerprint != group_fingerprint || each.team->rank() != rank ||
           each.team->size() != size || each.team->id() > last;
  };
  const auto out = std::stable_partition(kept_.begin(), kept_.end(), stays);
  std::move(out, kept_.end(), std::back_inserter(dropped));
  kept_.erase(out, kept_.end());
}

void TeamCache::clear() {
  std::vector<Kept> all;  // destroyed after the unlock
  const std::lock_guard lock(mutex_);
  all.swap(kept_);
}

void KnownGroups::put(uint64_t group_fingerprint, std::shared_ptr<const KnownGroup> known) {
  const std::lock_guard lock(mutex_);
  const auto is_like = [&](const Entry& each) {
    return each.is(group_fingerprint, known->rank, known->peers.size());
  };
  std::erase_if(entries_, is_like);
  if (entries_.size() == most) entries_.erase(entries_.begin());
  entries_.push_back({group_fingerprint, std::move(known)});
}

std::shared_ptr<const KnownGroup> KnownGroups::find(uint64_t group_fingerprint, uint32_t rank,
                                                    size_t size) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& each) { return each.is(group_fingerprint, rank, size); });
  if (found == entries_.end()) return nullptr;
  std::rotate(found, found + 1, entries_.end());
  return entries_.back().known;
}

}  // namespace sluice
