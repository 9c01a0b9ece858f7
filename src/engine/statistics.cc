// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/statistics.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "src/base/knobs.h"

namespace sluice {

void Statistics::add(const std::string& communicator, Collective collective,
                     const std::string& algorithm, const std::string& transport,
                     const Tally& tally) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Tally& row = rows_[{communicator, collective, algorithm, transport}];
  row.calls += tally.calls;
  row.bytes += tally.bytes;
  row.nanoseconds += tally.nanoseconds;
}

std::string Statistics::table(std::chrono::nanoseconds passed) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (rows_.empty()) return {};
  std::vector<std::pair<Key, Tally>> rows(rows_.begin(), rows_.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& left, const auto& right) {
    return left.second.nanoseconds > right.second.nanoseconds;
  });
  std::string text;
  char line[256];
  std::snprintf(line, sizeof line, "%-24s %-14s %-20s %-9s %12s %10s %12s %11s\n", "communicator",
                "collective", "algorithm", "transport", "calls", "bytes", "time ms", "us/call");
  text += line;
  double total = 0;
  for (const auto& [key, tally] : rows) {
    const auto& [communicator, collective, algorithm, transport] = key;
    const double microseconds = static_cast<double>(tally.nanoseconds) / 1e3;
    std::snprintf(line, sizeof line, "%-24.24s %-14s %-20s %-9s %12llu %10s %12.3f %11.2f\n",
                  communicator.c_str(), std::string(to_string(collective)).c_str(),
                  algorithm.c_str(), transport.c_str(),
                  static_cast<unsigned long long>(tally.calls), format_size(tally.bytes).c_str(),
                  microseconds / 1e3, microseconds / static_cast<double>(tally.calls));
    text += line;
    total += microseconds;
  }
  const double seconds = std::chrono::duration<double>(passed).count();
  std::snprintf(line, sizeof line, "in all %.3f ms, %.1f %% of the %.3f s since the first call\n",
                total / 1e3, total / 1e4 / seconds, seconds);
  text += line;
  return text;
}

}  // namespace sluice
