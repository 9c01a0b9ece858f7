// SPDX-License-Identifier: BSD-3-Clause
//
// `sluice run`: starts a program with Sluice preloaded, after seeing that it will take.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

struct PreloadOptions {
  std::string library;                // empty: SLUICE_LIBRARY, or the one of this installation
  std::vector<std::string> settings;  // "KNOB=VALUE"; the prefix SLUICE_ may be left out
  bool stats = false;
  bool dry_run = false;
  std::vector<std::string> command;  // the program and its arguments
};

// Becomes the program; returns only if that fails, or after a dry run.
Status run(const PreloadOptions& options);

}  // namespace sluice
