// SPDX-License-Identifier: BSD-3-Clause
//
// From measurements to rules: `sluice tune` makes rules from the log that its MPI program
// (osu/tune.cc) writes. A point is one collective at one number of ranks and bytes, with the time
// of each candidate. MPI's own collective is a candidate. The log is text, one point a line:
//
//   job 4 ranks on 1 host (n12), Sluice 0.1.0, Open MPI v4.1.4
//   point allreduce 4 1024 shm hosts=1 incumbent=flat flat=1.31 split=1.9 mpi=2.6 end
//
// The incumbent is the algorithm that is chosen without the new rules. Times are medians in
// microseconds.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/engine/rules.h"

namespace sluice {

struct TuningPoint {
  Collective collective = Collective::allreduce;
  Rank ranks = 1;
  size_t bytes = 0;  // Call::bytes; for alltoallv, whose rules test no bytes, of a rank's input
  std::string transport;                // as rules name it
  size_t hosts = 1;                     // that the ranks are on
  std::string incumbent;                // an algorithm, or "mpi"
  std::map<std::string, double> times;  // microseconds, by candidate; the incumbent's among them
};

struct TuningLog {
  std::string job;  // who measured where, for people
  std::vector<TuningPoint> points;
};

// A last line that is cut off is ignored. Errors name the line.
Result<TuningLog> parse_tuning_log(std::string_view text);

struct TunedRule {
  Rule rule;
  double gain = 1;  // how much faster than the incumbent: geometric mean over its points
  size_t points = 0;
};

struct Tuning {
  std::vector<TunedRule> rules;
  std::vector<std::string> winners;  // by point, in the log's order
  size_t mpi_wins = 0;               // points that MPI keeps
};

// Chooses a winner for each point and makes rules of the winners. Except for alltoallv, no winner
// is slower than the fastest candidate by more than `margin` (0.05: 5%). Within that, the incumbent
// stays, and neighbouring sizes get the same winner, if the time lost is less than `margin`.
// Between the numbers of ranks measured, the nearest one's rules hold; for more or fewer ranks
// there are none. Rules cover more bytes than were measured only if a megabyte was. Over links,
// points on one host make rules for one host, and points on several hosts rules for several.
Tuning make_tuning(const TuningLog& log, double margin);

// A file of rules. The header says what it is made of.
std::string to_text(const TuningLog& log, const Tuning& tuning, std::string_view header);

}  // namespace sluice
