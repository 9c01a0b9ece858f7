// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/selection.h"

#include <algorithm>
#include <utility>

#include "src/base/log.h"
#include "src/engine/team.h"

namespace sluice {

namespace {

// What an algorithm needs and the ranks lack, for a message; empty if it is something else.
const char* describe_lack(const Algorithm& algorithm, const Situation& situation) {
  if (algorithm.means() == Means::shared_memory && !situation.shm) return " without shared memory";
  if (algorithm.needs.cma && !situation.cma) return " without CMA";
  if (algorithm.needs.hosts && count_hosts(situation.hosts) < 2) return " on one host";
  if (algorithm.needs.groups && count_hosts(situation.groups) < 2) return " in one group";
  return "";
}

}  // namespace

void Selection::apply(const Hints& hints) {
  own_selector_ = process_.selector;
  ::sluice::apply(hints, &*own_selector_);
}

const Selector& Selection::selector() const {
  return own_selector_ ? *own_selector_ : process_.selector;
}

Situation Selection::situation_of(const Call& call, bool shm) const {
  return {
      .collective = call.collective,
      .transport = shm ? "shm" : process_.endpoint->name(),
      .ranks = ranks_,
      .ordered = is_ordered(call),
      .ragged = call.ragged,
      .exact = is_exact(call),
      .shm = shm,
      .cma = shm && arena_.cma,
      .hosts = hosts_,
      .groups = shm ? arena_.groups : std::span<const uint32_t>(),
      .per_processor = arena_.per_processor,
      .round_trip = arena_.round_trip,
  };
}

Choices Selection::look_up(const Call& call, bool shm) const {
  const Situation situation = situation_of(call, shm);
  const std::string passed_over = selector().passed_over(situation);
  if (!passed_over.empty() && rank_ == 0) {
    const bool reproducible = process_.knobs.reproducible && is_reducing(call.collective);
    const Algorithm* const forced = find_algorithm(call.collective, passed_over);
    log(Level::warning, "%s on %s: '%s' can't serve %u ranks%s%s%s%s; the rules choose another",
        std::string(to_string(call.collective)).c_str(), name_.c_str(), passed_over.c_str(), ranks_,
        forced ? describe_lack(*forced, situation) : "", situation.ordered ? " in order" : "",
        call.ragged ? " with uneven blocks" : "", reproducible ? " reproducibly" : "");
  }
  return selector().choices(situation);
}

bool Selection::is_able(const Algorithm& algorithm, const Call& call,
                        const Algorithm& ruled) const {
  const bool shm = ruled.means() == Means::shared_memory;
  return shm == (algorithm.means() == Means::shared_memory) &&
         selector().is_able(algorithm, situation_of(call, shm));
}

// The time of a call over links, in the bytes that are sent in it: a message costs as much as so
// many.
double Selection::predict(const Algorithm& algorithm, size_t bytes) const {
  constexpr double message = 32 << 10;
  const Shape shape{rank_, ranks_, 0, static_cast<uint32_t>(process_.knobs.radix), hosts_};
  const Cost cost = algorithm.cost(shape);
  return cost.steps * message + cost.bytes * static_cast<double>(bytes);
}

std::vector<const Algorithm*> Selection::find_rivals(const Call& call,
                                                     const Algorithm& ruled) const {
  constexpr double too_slow = 2;
  const Situation situation = situation_of(call, ruled.means() == Means::shared_memory);
  std::vector<const Algorithm*> rivals;
  const auto offer = [&](const Algorithm* rival) {
    if (!rival || rival == &ruled || rivals.size() == most_rivals) return;
    if (std::ranges::count(rivals, rival) > 0 || !is_able(*rival, call, ruled)) return;
    const bool is_ruled_out = rival->cost && ruled.cost &&
                              predict(*rival, call.bytes) > too_slow * predict(ruled, call.bytes);
    if (!is_ruled_out) rivals.push_back(rival);
  };
  for (const size_t factor : {4, 16}) {
    offer(selector().choose(situation, call.bytes / factor));
    offer(selector().choose(situation, call.bytes * factor));
  }
  std::vector<std::pair<double, const Algorithm*>> by_cost;
  for (const Algorithm& each : algorithms(call.collective)) {
    if (each.plan && each.cost) by_cost.emplace_back(predict(each, call.bytes), &each);
  }
  std::ranges::sort(by_cost);  // (of equal ones as they are listed: they lie in one table)
  for (const auto& [time, rival] : by_cost) offer(rival);
  return rivals;
}

void Selection::warn_of_mpi(const Call& call) {
  if (!process_.knobs.reproducible || !is_reducing(call.collective)) return;
  if (rank_ != 0 || process_.warned_of_mpi.exchange(true)) return;
  log(Level::warning,
      "SLUICE_REPRODUCIBLE: %s on %s is left to MPI by a knob, hint or rule, and MPI may give "
      "other bits with other ranks or sizes",
      std::string(to_string(call.collective)).c_str(), name_.c_str());
}

const Algorithm* Selection::choose_without_shm(const Call& call) {
  if (const Algorithm* const algorithm = choose(call, false)) return algorithm;
  Knobs knobs;
  knobs.reproducible = process_.knobs.reproducible;
  const auto builtin = Selector::make(knobs);
  return builtin.ok() ? builtin->choose(situation_of(call, false), call.bytes) : nullptr;
}

}  // namespace sluice
