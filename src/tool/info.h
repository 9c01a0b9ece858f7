// SPDX-License-Identifier: BSD-3-Clause
//
// `sluice info`: what this Sluice is and how it is set.
#pragma once

#include "src/base/status.h"

namespace sluice {

struct InfoOptions {
  bool json = false;
  // Which parts; all if none is asked for.
  bool knobs = false;
  bool algorithms = false;
  bool rules = false;
};

// An error if a setting is not accepted, after everything was printed.
Status info(const InfoOptions& options);

}  // namespace sluice
