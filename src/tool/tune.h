// SPDX-License-Identifier: BSD-3-Clause
//
// `sluice tune`: measures a machine and a job, and writes a file of rules for SLUICE_RULES. Under
// mpirun each rank becomes the MPI program that measures (osu/tune.cc), with Sluice preloaded; rank
// 0 then becomes this command again, which makes rules of the log.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

struct TuneOptions {
  std::string output = "sluice.rules";
  std::string log;                       // empty: the output's name with .log
  std::string svg;                       // empty: no drawing
  std::vector<std::string> collectives;  // empty: all
  std::vector<int> ranks;                // empty: a choice up to all
  std::string sizes = "4:4m";            // MIN:MAX, or a list
  double seconds = 600;
  int rounds = 7;
  double margin = 5;  // per cent
  std::string library;
  bool make = false;  // measure nothing: make rules of the log
};

// Returns if it fails, or when rules are made.
Status tune(const TuneOptions& options);

}  // namespace sluice
