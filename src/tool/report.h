// SPDX-License-Identifier: BSD-3-Clause
//
// `sluice report`: a page about files of statistics. The program is in Python (src/report).
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

struct ReportOptions {
  std::vector<std::string> files;
  std::string output;  // empty: the last file's name with .html
  bool png = false;
};

// Returns only if the program cannot be started.
Status report(const ReportOptions& options);

}  // namespace sluice
