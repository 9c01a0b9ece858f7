// SPDX-License-Identifier: BSD-3-Clause
//
// The file that SLUICE_STATS=json:FILE or prometheus:FILE asks for. sluice-statistics(5) says what
// is in it.
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/engine/job_statistics.h"

namespace sluice {

class StatisticsFile {
 public:
  // stats: the setting, which names a file.
  explicit StatisticsFile(const std::string& stats);

  // What goes into it.
  std::string text(const JobStatistics& job, const std::string& version) const;
  // Of the whole job; and where a rank writes what it has by itself: FILE.rank3, or FILE.rank3.prom
  // for FILE.prom, because the collector reads these only.
  const std::string& path() const { return path_; }
  std::string path_of_rank(Rank rank) const;

 private:
  enum class Format : uint8_t { json, prometheus };
  Format format_ = Format::json;
  std::string path_;
};

std::string to_json(const JobStatistics& job, const std::string& version);
// The text format of Prometheus, 0.0.4.
std::string to_prometheus(const JobStatistics& job, const std::string& version);

}  // namespace sluice
