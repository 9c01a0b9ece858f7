// SPDX-License-Identifier: BSD-3-Clause
//
// `sluice run`: checks that a program would load Sluice, then starts it with Sluice preloaded.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/tool/audit.h"

namespace sluice {

struct PreloadOptions {
  std::string library;                // empty: SLUICE_LIBRARY, or this installation's
  std::vector<std::string> settings;  // "KNOB=VALUE"; the prefix SLUICE_ is optional
  bool stats = false;
  bool dry_run = false;
  AuditWish audit = AuditWish::if_useful;
  std::vector<std::string> command;  // the program and its arguments
};

// Replaces this process by the program (exec). Returns on failure or after a dry run.
Status run(const PreloadOptions& options);

}  // namespace sluice
