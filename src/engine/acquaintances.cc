// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/acquaintances.h"

#include <algorithm>
#include <utility>

namespace sluice {

void Acquaintances::put(uint64_t mark, std::shared_ptr<const Acquaintance> known) {
  const std::lock_guard lock(mutex_);
  const auto is_like = [&](const Entry& each) {
    return each.is(mark, known->rank, known->peers.size());
  };
  std::erase_if(entries_, is_like);
  if (entries_.size() == most) entries_.erase(entries_.begin());
  entries_.push_back({mark, std::move(known)});
}

std::shared_ptr<const Acquaintance> Acquaintances::find(uint64_t mark, uint32_t rank, size_t size) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(entries_, [&](const Entry& each) { return each.is(mark, rank, size); });
  if (found == entries_.end()) return nullptr;
  std::rotate(found, found + 1, entries_.end());
  return entries_.back().known;
}

}  // namespace sluice
