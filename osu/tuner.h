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
    std::string collective;               // name as in rules: "broadcast"
    std::vector<std::string> candidates;  // algorithms, and "mpi"
  };
  std::string log;
  std::vector<Subject> subjects;
  std::vector<int> ranks;     // empty: 2, 3, 4, 6, 8, 12, 16 and so on, and the job's size
  std::vector<size_t> sizes;  // ascending; bytes counted as in rules (Call::bytes)
  double seconds = 0;         // 0: no limit
  int rounds = 7;
  std::vector<std::string> outputs;  // files that the command after it writes
  std::vector<std::string> then;
};

// Collective over the world. Returns false on failure; rank 0 has printed the reason.
bool tune(const TuneOptions& options);

}  // namespace sluice::osu
