// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/team_halves.h"

#include <limits>

namespace sluice {

NonblockingTeam& TeamHalves::nonblocking() {
  if (!nonblocking_) {
    Cells* const cells = of_.shm ? &of_.shm->cells(0) : nullptr;
    nonblocking_ = std::make_unique<NonblockingTeam>(of_, of_nonblocking, cells);
  }
  return *nonblocking_;
}

NonblockingTeam* TeamHalves::add() {
  if (last_part_ == std::numeric_limits<uint16_t>::max()) return nullptr;
  ++last_part_;
  const auto request = static_cast<uint32_t>(last_part_ - earlier_parts_);
  persistent_.push_back(std::make_unique<NonblockingTeam>(of_, last_part_, nullptr, request));
  return persistent_.back().get();
}

FreeCells TeamHalves::free_cells() const {
  FreeCells free;
  for (uint32_t set = 0; of_.shm && set < owners_.size(); ++set) {
    if (owners_[set]) continue;
    free.sets |= 1U << set;
    free.last[set] = static_cast<uint32_t>(of_.shm->cells(set + 1).last());
  }
  return free;
}

void TeamHalves::give_cells(NonblockingTeam& part, uint32_t set) {
  owners_[set] = &part;
  part.use(of_.shm->cells(set + 1));
}

void TeamHalves::remove(NonblockingTeam& part) {
  for (auto& owner : owners_) {
    if (owner == &part) owner = nullptr;
  }
  if (of_.process.knobs.counts_calls()) part.settle_accounts(counted());
  std::erase_if(persistent_, [&](const auto& each) { return each.get() == &part; });
}

CountedTeam TeamHalves::counted() const {
  const auto& channels = of_.channels;
  uint64_t group = 0;
  for (Rank rank = 0; rank < channels.size(); ++rank) {
    const ProcessId& process = channels.process(rank);
    group = scramble(group ^ process.high ^ scramble(process.low));
  }
  return {of_.name, group, channels.id(), of_.rank, channels.size(), channels.carrier()};
}

void TeamHalves::settle_accounts() {
  const CountedTeam team = counted();
  if (nonblocking_) nonblocking_->settle_accounts(team);
  for (const auto& each : persistent_) each->settle_accounts(team);
}

bool TeamHalves::retire() { return !nonblocking_ || nonblocking_->retire(); }

void TeamHalves::serve() {
  if (nonblocking_) nonblocking_->serve();
  earlier_parts_ = last_part_;
}

}  // namespace sluice
