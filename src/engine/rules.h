// SPDX-License-Identifier: BSD-3-Clause
//
// Selection: which algorithm serves a call. Rules are text, one a line, the first that matches and
// can serve wins:
//
//   # collective transport [ranks:A-B] [hosts:A-B] [per_host:A-B] [groups:A-B]
//   #   [per_processor:A-B] [round_trip:A-B] [bytes:A-B] -> algorithm
//   allreduce tcp ranks:2-64 bytes:0-32k -> recursive_doubling
//   *         *                          -> mpi
//
// A bound may be left out ("ranks:8-"); both ends are included; hosts are those that the ranks are
// on, per_host the ranks of the host that has most, groups those that ranks which share memory form
// (localities.h), per_processor the most that take turns on a processor of one of these, ranks of
// other teams that it has met included, round_trip the nanoseconds that a flag takes between two
// ranks and back (0: other numbers of ranks, or they take turns); bytes are Call::bytes, with k, m,
// g.
// "*" is any. "mpi" leaves the call to MPI. Everything looked at is equal on all ranks, and so is
// the outcome.
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

struct Rule {
  std::optional<Collective> collective;  // none: any
  std::string transport;                 // "*": any
  struct Bounds {
    size_t low = 0, high = ~size_t{0};
    bool contain(size_t value) const { return low <= value && value <= high; }
  };
  Bounds ranks, hosts, per_host, groups, per_processor, round_trip, bytes;
  std::string algorithm;  // or "mpi"
};

// The rules that ship with Sluice.
std::string_view builtin_rules();

// Errors name the line and what is wrong with it (an algorithm that the collective lacks, say).
Result<std::vector<Rule>> parse_rules(std::string_view text);

// Everything a choice depends on but the bytes.
struct Situation {
  Collective collective;
  std::string_view transport;
  Rank ranks = 1;
  bool ordered = false;  // operands must be combined in rank order
  bool ragged = false;   // blocks differ in size
  bool direct = false;   // direct algorithms can serve: an arena is there, and has room
  bool fetches = false;  // and ranks can read each other's memory
  std::span<const uint32_t> hosts = {};   // as in Shape
  std::span<const uint32_t> groups = {};  // numbered alike; empty: one
  uint32_t per_processor = 1;             // most of those that share memory; 1: or not known
  uint32_t round_trip = 0;                // of two that share memory, in ns; 0: not known
};

// Bytes -> algorithm, for one situation: looked up at every call, so worked out beforehand.
class Choices {
 public:
  // nullptr: left to MPI.
  const Algorithm* at(size_t bytes) const;

 private:
  friend class Selector;
  struct From {
    size_t bytes;
    const Algorithm* algorithm;
  };
  std::vector<From> from_;  // ascending, the first from 0
};

// The rules in force: each collective's own knob before the knobs' file before the built-in ones.
// Where results are to be reproducible, algorithms that bracket otherwise can't serve.
class Selector {
 public:
  // An empty selector leaves everything to MPI.
  Selector() = default;
  // Errors name the knob: a file that can't be read or parsed, an algorithm that does not exist.
  static Result<Selector> make(const Knobs& knobs);

  // From now on that collective is done so, as by its knob: an algorithm's name, mpi, or nothing
  // (the rules decide). An error names those that there are, and changes nothing.
  Status force(Collective collective, const std::string& name);

  Choices choices(const Situation& situation) const;
  // What serves one call; nullptr: MPI does. A forced algorithm that can't serve is passed over.
  const Algorithm* choose(const Situation& situation, size_t bytes) const;
  // Whether a knob forces an algorithm that can't serve here; its name, or empty.
  std::string passed_over(const Situation& situation) const;

 private:
  bool is_able(const Algorithm& algorithm, const Situation& situation) const;
  const Algorithm* able(const std::string& name, const Situation& situation) const;

  bool reproducible_ = false;  // all that combines does so by the balanced tree (Bracketing)
  std::vector<Rule> rules_;
  std::string forced_[collective_count];
};

}  // namespace sluice
