// SPDX-License-Identifier: BSD-3-Clause
//
// `sluice tune`: measures a machine and a job, and writes a rules file for SLUICE_RULES. Under
// mpirun, each rank execs the measuring MPI program (osu/tune.cc) with Sluice preloaded. Then rank
// 0 execs this command again to make rules from the log.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

struct TuneOptions {
  std::string output = "sluice.rules";
  std::string log;                       // empty: the output's name plus .log
  std::string svg;                       // empty: no drawing
  std::vector<std::string> collectives;  // empty: all
  std::vector<int> ranks;                // empty: a selection, up to all ranks
  std::string sizes = "4:4m";            // MIN:MAX, or a list
  double seconds = 600;
  int rounds = 7;
  double margin = 5;  // per cent by which another algorithm must beat the built-in choice
  std::string library;
  bool make = false;  // do not measure; make rules from the log
};

// Returns on failure, or after making rules; when measuring, it execs and does not return.
Status tune(const TuneOptions& options);

}  // namespace sluice
