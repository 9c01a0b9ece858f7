// SPDX-License-Identifier: BSD-3-Clause
//
// Which algorithm carries each of a team's calls. All ranks choose alike: rules, hints and what
// they test are equal on all of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/engine/call.h"
#include "src/engine/hints.h"
#include "src/engine/rules.h"

namespace sluice {

struct Process;

class Selection {
 public:
  // What the ranks that share an arena learn about each other; see Situation.
  struct Arena {
    bool cma = false;
    std::span<const uint32_t> groups = {};
    uint32_t per_processor = 1;
    uint32_t round_trip = 0;
  };

  // name: of the communicator, for messages; may change. hosts: as in Shape. Both must outlive
  // this.
  Selection(Process& process, const std::string& name, Rank rank, Rank ranks,
            std::span<const uint32_t> hosts)
      : process_(process), name_(name), rank_(rank), ranks_(ranks), hosts_(hosts) {}

  // Before the first choice, if at all.
  void learn(const Arena& arena) { arena_ = arena; }
  // Applies hints, which all ranks gave and which are valid. May throw std::bad_alloc.
  void apply(const Hints& hints);
  bool has_hints() const { return own_selector_.has_value(); }

  static bool is_ordered(const Call& call) {
    return call.reduction.kernel && !call.reduction.commutative;
  }

  // shm: shared-memory algorithms can serve. nullptr: MPI.
  const Algorithm* choose(const Call& call, bool shm) { return find(call, shm).algorithm; }
  // The algorithm, and whether trials may decide otherwise.
  const Choices::From& find(const Call& call, bool shm) {
    auto& choices = choices_[static_cast<uint32_t>(call.collective)][is_ordered(call)][call.ragged]
                            [is_exact(call)][shm];
    if (!choices) choices = look_up(call, shm);
    const Choices::From& found = choices->find(call.bytes);
    if (!found.algorithm) warn_of_mpi(call);
    return found;
  }
  bool is_forced(Collective collective) const { return selector().is_forced(collective); }
  // Algorithms that the same ranks can run, and that may be faster than the one that the rules have
  // chosen, likely ones first: the rules' algorithms for shorter and longer calls, then those with
  // plans of the least cost. None is predicted to take twice as long.
  static constexpr size_t most_rivals = 2;
  std::vector<const Algorithm*> find_rivals(const Call& call, const Algorithm& ruled) const;
  // Whether an algorithm of the call's collective can carry it where `ruled` does.
  bool is_able(const Algorithm& algorithm, const Call& call, const Algorithm& ruled) const;
  // As `choose` without shared memory, but never MPI, even if the rules leave the other transport's
  // calls to it: the caller has been told that Sluice carries this call. nullptr: none can.
  const Algorithm* choose_without_shm(const Call& call);

 private:
  const Selector& selector() const;
  Situation situation_of(const Call& call, bool shm) const;
  double predict(const Algorithm& algorithm, size_t bytes) const;
  [[gnu::cold]] Choices look_up(const Call& call, bool shm) const;
  [[gnu::cold]] void warn_of_mpi(const Call& call);

  Process& process_;
  const std::string& name_;
  const Rank rank_, ranks_;
  const std::span<const uint32_t> hosts_;
  Arena arena_;
  std::optional<Selector> own_selector_;  // with hints
  // By ordered, ragged, exact and shm.
  std::optional<Choices> choices_[collective_count][2][2][2][2];
};

}  // namespace sluice
