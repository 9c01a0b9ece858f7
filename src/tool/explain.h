// SPDX-License-Identifier: BSD-3-Clause
//
// `sluice explain`: shows an algorithm's plan as a table of steps and costs, as JSON, or drawn.
#pragma once

#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/tool/study.h"

namespace sluice {

struct ExplainOptions {
  StudyOptions study;
  std::string size = "1m";   // as given by the user; parsed into study.bytes
  std::optional<Rank> rank;  // show this rank's steps; empty: all if few, else rank 0's
  std::string hosts;         // "4x2": 4 hosts of 2 ranks each; or
  std::string placement;     // "0,0,1,1": the host of each rank; both empty: unknown
  bool json = false;
  std::string svg;  // output file; empty: no drawing
};

Status explain(const ExplainOptions& options);

}  // namespace sluice
