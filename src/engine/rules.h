// SPDX-License-Identifier: BSD-3-Clause
//
// Selection: which algorithm serves a call. Rules are text, one a line, the first that matches and can serve wins:
//
//   # collective transport [ranks:A-B] [bytes:A-B] -> algorithm
//   allreduce tcp ranks:2-64 bytes:0-32k -> recursive_doubling
//   *         *                          -> mpi
//
// A bound may be left out ("ranks:8-"); both ends are included; bytes are Call::bytes, with k, m, g. "*" is any.
// "mpi" leaves the call to MPI. Everything looked at is equal on all ranks (so is the outcome).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/algorithm.h"
#include "src/base/knobs.h"
#include "src/base/status.h"

namespace sluice {

struct Rule {
  std::optional<Collective> collective;  // none: any
  std::string transport;                 // "*": any
  Rank min_ranks = 0, max_ranks = ~Rank{0};
  size_t min_bytes = 0, max_bytes = ~size_t{0};
  std::string algorithm;                 // or "mpi"
};

// The rules that ship with Sluice.
std::string_view builtin_rules();

// Errors name the line and what is wrong with it (an algorithm that the collective lacks among them).
Result<std::vector<Rule>> parse_rules(std::string_view text);

// The rules in force: the knobs' file, if any, before the built-in ones; and each collective's own knob before all.
class Selector {
 public:
  static Result<Selector> make(const Knobs& knobs);

  // What serves such a call; nullptr: MPI does. A forced algorithm that can't serve is passed over (`*passed_over` set).
  const Algorithm* choose(Collective collective, std::string_view transport, Rank ranks,
                          size_t bytes, bool ordered, bool ragged,
                          bool* passed_over = nullptr) const;

 private:
  std::vector<Rule> rules_;
  std::string forced_[collective_count];
};

}  // namespace sluice
