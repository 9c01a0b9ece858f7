// SPDX-License-Identifier: BSD-3-Clause
//
// The command line of the benchmarks: the options of the OSU Micro-Benchmarks' blocking
// collectives, as far as they apply here, and their defaults.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "osu/function.h"
#include "osu/pattern.h"
#include "osu/trial.h"

namespace sluice::osu {

struct Options {
  size_t min_bytes = 1;
  size_t max_bytes = size_t{1} << 20;
  std::optional<int> iterations;  // empty: depends on message size
  std::optional<int> warmup;
  size_t memory_limit = size_t{512} << 20;
  std::vector<const ElementType*> types;
  std::vector<int> percentiles;  // ascending
  bool full = false;
  Buffers buffers;
  bool validate = false;
  int validation_warmup = 5;  // checked calls before each timed one

  int iterations_for(size_t bytes) const;
  int warmup_for(size_t bytes) const;
};

// The result of parsing: `options` to run with, or a `text` to print (help, version, or an error
// that names the option) and the exit `status`.
struct Parsed {
  std::optional<Options> options;
  std::string text;
  int status = 0;
};

Parsed parse_options(const Function& function, int argc, char** argv);

}  // namespace sluice::osu
