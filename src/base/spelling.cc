// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/spelling.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(const std::string& name, const std::string& prefix,
                         std::span<const std::string> names) {
  const auto distance = [&](const std::string& other) { return edit_distance(name, other); };
  const auto nearest = std::min_element(
      names.begin(), names.end(),
      [&](const std::string& a, const std::string& b) { return distance(a) < distance(b); });
  const size_t own_letters = name.size() - std::min(name.size(), prefix.size());
  if (nearest == names.end() || distance(*nearest) * 2 > std::max<size_t>(own_letters, 2)) {
    return "";
  }
  return *nearest;
}

}  // namespace sluice
