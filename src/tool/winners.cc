// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/winners.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "src/base/knobs.h"
#include "src/base/plain_text.h"
#include "src/tool/svg.h"
#include "src/tool/text.h"

namespace sluice {
namespace {

constexpr double row_height = 20, left = 170, top = 30, field = 17;

// Hues that colour-blind readers can tell apart; MPI is grey.
constexpr std::array<std::string_view, 10> hues = {"#2467a8", "#e69f00", "#1b9e77", "#b3552e",
                                                   "#8d6cab", "#56b4e9", "#c9b400", "#cc79a7",
                                                   "#7f5539", "#2a2a72"};

std::string range(const Rule::Bounds& bounds) {
  const bool open = bounds.high == ~size_t{0};
  if (bounds.low == bounds.high) return format_size(bounds.low);
  if (bounds.low == 0 && open) return "any";
  return format_size(bounds.low) + "-" + (open ? "" : format_size(bounds.high));
}

// A colour for each algorithm that wins anywhere.
std::map<std::string, std::string_view> colors_of(const Tuning& tuning) {
  std::map<std::string, std::string_view> colors;
  for (const std::string& name : tuning.winners) colors[name] = "#b0b0b0";
  size_t next = 0;
  for (auto& [name, color] : colors) {
    if (name != "mpi") color = hues[next++ % hues.size()];
  }
  return colors;
}

using RowKey = std::tuple<Collective, std::string, Rank>;

}  // namespace

std::string winners_table(const TuningLog& log, const Tuning& tuning) {
  TextTable table({"COLLECTIVE", "OVER", "RANKS", "BYTES", "ALGORITHM", "GAIN"});
  table.right(5);
  for (const TunedRule& tuned : tuning.rules) {
    const Rule& rule = tuned.rule;
    table.add({std::string(to_string(*rule.collective)), rule.transport, range(rule.ranks),
               range(rule.bytes), rule.algorithm, decimal(tuned.gain, 2)});
  }
  return "Winners on " + log.job + " (gain: against the built-in rules' choice)\n" + table.text();
}

std::string draw_winners(const TuningLog& log, const Tuning& tuning) {
  std::set<size_t> sizes;
  std::map<RowKey, std::map<size_t, std::string>> rows;
  for (size_t i = 0; i < log.points.size(); ++i) {
    const TuningPoint& point = log.points[i];
    sizes.insert(point.bytes);
    rows[{point.collective, point.transport, point.ranks}][point.bytes] = tuning.winners[i];
  }
  const auto colors = colors_of(tuning);
  const double width = left + field * static_cast<double>(sizes.size()) + 150;
  const double height =
      top + row_height * static_cast<double>(std::max(rows.size(), colors.size()) + 3);
  Svg svg(width, height);
  svg.text({8, 18}, "Winners, " + log.job, {.bold = true});
  double y = top + row_height / 2;
  for (const auto& [key, winners] : rows) {
    const auto& [collective, transport, ranks] = key;
    svg.text({left - 8, y + 4}, std::string(to_string(collective)) + ", " + counted(ranks, "rank"),
             {.align = Align::end});
    double x = left + field / 2;
    for (const size_t size : sizes) {
      const auto winner = winners.find(size);
      if (winner != winners.end()) {
        svg.box({x, y}, field - 1, row_height - 2, colors.at(winner->second));
      }
      x += field;
    }
    y += row_height;
  }
  double x = left + field / 2;
  for (const size_t size : sizes) {
    const bool power = (size & (size - 1)) == 0 && size > 0 &&
                       static_cast<int>(std::log2(static_cast<double>(size))) % 2 == 0;
    if (power) svg.text({x, y + 8}, format_size(size), {.size = 10, .align = Align::middle});
    x += field;
  }
  y = top + row_height / 2;
  for (const auto& [name, color] : colors) {
    svg.box({width - 130, y}, 12, 12, color);
    svg.text({width - 118, y + 4}, name, {});
    y += row_height;
  }
  return std::move(svg).finish();
}

}  // namespace sluice
