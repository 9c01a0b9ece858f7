// SPDX-License-Identifier: BSD-3-Clause
//
// `sluice explain`: an algorithm's plan as a table of steps and costs, as JSON, and as a drawing.
#pragma once

#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/tool/study.h"

namespace sluice {

struct ExplainOptions {
  StudyOptions study;
  std::string size = "1m";   // as it was written: study.bytes
  std::optional<Rank> rank;  // whose steps; nothing: all if they are few, else rank 0's
  std::string hosts;         // "4x2": so many hosts of so many ranks each; or
  std::string placement;     // "0,0,1,1": the host of each rank; both empty: not known
  bool json = false;
  std::string svg;  // a file; empty: no drawing
};

Status explain(const ExplainOptions& options);

}  // namespace sluice
