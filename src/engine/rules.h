// SPDX-License-Identifier: BSD-3-Clause
//
// Selection: which algorithm serves a call. Rules are text, one a line. The first rule that matches
// the call, and whose algorithm can serve it, wins:
//
//   # collective transport [ranks:A-B] [hosts:A-B] [per_host:A-B] [groups:A-B]
//   #   [per_processor:A-B] [round_trip:A-B] [bytes:A-B] [ordered:A-B] [ragged:A-B] [exact:A-B]
//   #   -> algorithm
//   allreduce tcp ranks:2-64 bytes:0-32k -> recursive_doubling
//   *         *                          -> mpi
//
// Both ends of a range are included, and a bound may be left out ("ranks:8-"). "*" matches
// anything. "mpi" leaves the call to MPI. "rules" leaves the choice to the rules that follow, and
// ends trials of such calls (trials.h). Conditions are equal on all ranks, so the choice is too:
//
//   hosts          the hosts that the ranks are on
//   per_host       the ranks of the host that has most
//   groups         those that ranks which share memory form (localities.h)
//   per_processor  the most ranks for a processor, among ranks that share memory; ranks of other
//                  teams count if their process has met them
//   round_trip     the nanoseconds that a flag takes between two ranks and back (0: other numbers
//                  of ranks, or they take turns)
//   bytes          Call::bytes; units k, m, g
//   ordered        1: operands must be combined in rank order; else 0
//   ragged         1: blocks differ in size; else 0
//   exact          1: the result has the same bits by any algorithm (is_exact in call.h); else 0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/algorithm.h"
#include "src/base/knobs.h"
#include "src/base/status.h"

namespace sluice {

// Words in place of an algorithm's name.
constexpr std::string_view leave_to_mpi = "mpi", leave_to_rules = "rules";

struct Rule {
  std::optional<Collective> collective;  // none: any
  std::string transport;                 // "*": any
  struct Bounds {
    size_t low = 0, high = ~size_t{0};
    bool contain(size_t value) const { return low <= value && value <= high; }
  };
  Bounds ranks, hosts, per_host, groups, per_processor, round_trip, bytes, ordered, ragged, exact;
  std::string algorithm;  // or one of these words
  bool ships = false;     // with Sluice
};

// The rules that ship with Sluice.
std::string_view builtin_rules();

// Errors name the line and the fault (for example, an algorithm that the collective lacks).
Result<std::vector<Rule>> parse_rules(std::string_view text);
// One line, whose transport and algorithm may be any words.
Result<Rule> parse_rule(std::string_view line);

// Everything that a choice depends on, except the bytes.
struct Situation {
  Collective collective;
  std::string_view transport;
  Rank ranks = 1;
  bool ordered = false;  // operands must be combined in rank order
  bool ragged = false;   // blocks differ in size
  bool exact = false;    // the result has the same bits by any algorithm
  bool shm = false;      // shared-memory algorithms can serve: there is an arena with enough room
  bool cma = false;      // and all ranks can use CMA
  std::span<const uint32_t> hosts = {};   // as in Shape
  std::span<const uint32_t> groups = {};  // numbered alike; empty: one
  uint32_t per_processor = 1;             // most ranks for a processor; 1: or not known
  uint32_t round_trip = 0;                // of two that share memory, in ns; 0: not known
};

// Bytes -> algorithm, for one situation. Computed once, because every call looks it up.
class Choices {
 public:
  struct From {
    size_t bytes;
    const Algorithm* algorithm;  // nullptr: left to MPI
    bool is_open;                // a rule that ships with Sluice has decided, and no other before
  };
  const From& find(size_t bytes) const;
  const Algorithm* at(size_t bytes) const { return find(bytes).algorithm; }

 private:
  friend class Selector;

  std::vector<From> from_;  // ascending, the first from 0
};

// The rules in force. A collective's own knob precedes the file of SLUICE_RULES, which precedes the
// built-in rules. If results must be reproducible, only balanced bracketing can serve reductions.
class Selector {
 public:
  // An empty selector leaves everything to MPI.
  Selector() = default;
  // Errors name the knob: a file that can't be read or parsed, an algorithm that does not exist.
  static Result<Selector> make(const Knobs& knobs);

  // Forces how that collective is done, as its knob does: an algorithm's name, mpi, or empty (the
  // rules decide). An error lists the algorithms that exist, and changes nothing.
  Status force(Collective collective, const std::string& name);

  Choices choices(const Situation& situation) const;
  // The algorithm for one call; nullptr: MPI. A forced algorithm that can't serve is passed over.
  const Algorithm* choose(const Situation& situation, size_t bytes) const {
    return find(situation, bytes).algorithm;
  }
  // Whether the algorithm, of the situation's collective, can serve there.
  bool is_able(const Algorithm& algorithm, const Situation& situation) const;
  // Whether a knob or a hint says how that collective is done.
  bool is_forced(Collective collective) const {
    return !forced_[static_cast<uint32_t>(collective)].empty();
  }
  // The name of a forced algorithm that can't serve here; empty if there is none.
  std::string passed_over(const Situation& situation) const;

 private:
  struct Choice {
    const Algorithm* algorithm;
    bool is_open;
  };
  Choice find(const Situation& situation, size_t bytes) const;
  const Algorithm* able(const std::string& name, const Situation& situation) const;

  bool reproducible_ = false;  // reductions must use the balanced tree (Bracketing)
  std::vector<Rule> rules_;
  std::string forced_[collective_count];
};

}  // namespace sluice
