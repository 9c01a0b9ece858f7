// SPDX-License-Identifier: BSD-3-Clause
//
// Values of SLUICE_STATS that name a file: json:FILE and prometheus:FILE.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

// Where the path begins; 0 if none is named.
inline size_t path_of_report(const std::string& text) {
  for (const std::string_view kind : {"json:", "prometheus:"}) {
    if (text.starts_with(kind)) return kind.size();
  }
  return 0;
}

// Whether a setting of that name and value names a file.
inline bool names_report(std::string_view name, const std::string& text) {
  return name == "SLUICE_STATS" && path_of_report(text) > 0;
}

}  // namespace sluice
