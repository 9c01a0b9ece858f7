// SPDX-License-Identifier: BSD-3-Clause
//
// `sluice info`: prints version, settings, algorithms and rules.
#pragma once

#include "src/base/status.h"

namespace sluice {

struct InfoOptions {
  bool json = false;
  // Which parts to print; all if none is set.
  bool knobs = false;
  bool algorithms = false;
  bool rules = false;
  bool choices = false;  // what trials have found out (SLUICE_CHOICE_FILE)
};

// Prints everything first, then returns an error if a setting is not accepted.
Status info(const InfoOptions& options);

// Prints "sluice VERSION"; as JSON, also the MPI that it was built for, the library that `sluice
// run` preloads ("" if it is not found) and the site's file of settings.
void print_version(bool json);

}  // namespace sluice
