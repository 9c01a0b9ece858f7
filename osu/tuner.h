// SPDX-License-Identifier: BSD-3-Clause
//
// The measurements of osu_tune.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::osu {

struct TuneOptions {
  struct Subject {
    std::string collective;               // as in rules: "broadcast"
    std::vector<std::string> candidates;  // algorithms, and "mpi"
  };
  std::string log;
  std::vector<Subject> subjects;
  std::vector<int> ranks;     // empty: 2, 3, 4, 6, 8, 12, 16 and so on up to all, and all
  std::vector<size_t> sizes;  // ascending; bytes as rules count them (Call::bytes)
  double seconds = 0;         // 0: no limit
  int rounds = 7;
  std::vector<std::string> then;
};

// Collective over the world. False if it can't be done: rank 0 has said why.
bool tune(const TuneOptions& options);

}  // namespace sluice::osu
