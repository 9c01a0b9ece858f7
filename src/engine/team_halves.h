// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of a team that run calls in flight: one for its non-blocking calls, and one for each
// persistent request, because ranks may start these in any order. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/engine/nonblocking_team.h"

namespace sluice {

// The cells that could be those of a new persistent request. Ranks compare them, and choose a set
// that all have, with the same number.
struct FreeCells {
  uint32_t sets = 0;  // a bit for each, the lowest for Cells' set 1
  std::array<uint32_t, ArenaRank::persistent_sets> last{};  // numbers of their last calls
};

class TeamHalves {
 public:
  explicit TeamHalves(const WholeTeam& of) : of_(of) {}

  // Made when first asked for. May throw std::bad_alloc.
  NonblockingTeam& nonblocking();

  // For a new persistent request, until `remove`. All ranks add them in one order. nullptr: the
  // team can't have more, as all ranks know. May throw std::bad_alloc; the others may have theirs.
  NonblockingTeam* add();
  // Which cells no persistent request has on this rank; none without an arena.
  FreeCells free_cells() const;
  // Gives it a set of cells; all ranks the same one. set: the number of its bit.
  void give_cells(NonblockingTeam& part, uint32_t set);
  // No call of it may be in flight.
  void remove(NonblockingTeam& part);

  // Whether no call is in flight, and there is no persistent request.
  bool is_idle() const { return persistent_.empty() && (!nonblocking_ || nonblocking_->is_idle()); }

  // The whole team, for its counts.
  CountedTeam counted() const;
  // As those of NonblockingTeam, which must be idle.
  void settle_accounts();
  bool retire();
  void serve();

 private:
  static constexpr uint16_t of_nonblocking = 1;  // TeamId::part

  const WholeTeam of_;
  std::unique_ptr<NonblockingTeam> nonblocking_;
  std::vector<std::unique_ptr<NonblockingTeam>> persistent_;
  std::array<const NonblockingTeam*, ArenaRank::persistent_sets> owners_{};  // of cells
  uint16_t last_part_ = of_nonblocking;
  uint16_t earlier_parts_ = of_nonblocking;  // with those of earlier communicators
};

}  // namespace sluice
