// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/statistics.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "src/base/knobs.h"
#include "src/base/plain_text.h"

namespace sluice {
namespace {

constexpr size_t columns = 8;
using TableRow = std::array<std::string, columns>;

// The first four columns are names, aligned left.
constexpr size_t names = 4;
constexpr size_t least_widths[columns] = {24, 14, 20, 9, 12, 10, 12, 11};

std::string align(const std::vector<TableRow>& lines) {
  std::array<size_t, columns> widths{};
  std::ranges::copy(least_widths, widths.begin());
  for (const TableRow& cells : lines) {
    for (size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string text;
  for (const TableRow& cells : lines) {
    for (size_t i = 0; i < columns; ++i) {
      const std::string room(widths[i] - cells[i].size(), ' ');
      text += i < names ? cells[i] + room : room + cells[i];
      text += i + 1 < columns ? ' ' : '\n';
    }
  }
  return text;
}

}  // namespace

std::string shorten_name(std::string name) {
  constexpr size_t most = 64;
  std::ranges::replace_if(
      name, [](unsigned char c) { return c < ' '; }, ' ');
  if (name.size() <= most) return name;
  size_t end = most - 3;
  while (end > 0 && (name[end] & 0xc0) == 0x80) --end;  // not inside a UTF-8 character
  return name.substr(0, end) + "...";
}

void Statistics::add(const std::string& communicator, Collective collective,
                     const std::string& algorithm, const std::string& transport,
                     const Tally& tally) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Tally& row = rows_[{communicator, collective, algorithm, transport}];
  row.calls += tally.calls;
  row.bytes += tally.bytes;
  row.nanoseconds += tally.nanoseconds;
}

void Statistics::add(CountedClass of, Rank rank, Rank ranks, const ClassRecord& record,
                     size_t most) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Class& sum = classes_[std::move(of)];
  sum.rank = rank;
  sum.ranks = ranks;
  sum.record.add(record, most);
}

std::map<CountedClass, Statistics::Class> Statistics::classes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return classes_;
}

std::string Statistics::table(std::chrono::nanoseconds passed) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (rows_.empty()) return {};
  std::vector<std::pair<Key, Tally>> rows(rows_.begin(), rows_.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& left, const auto& right) {
    return left.second.nanoseconds > right.second.nanoseconds;
  });
  std::vector<TableRow> lines = {{"communicator", "collective", "algorithm", "transport", "calls",
                                  "bytes", "time ms", "us/call"}};
  double total = 0;
  uint64_t carried = 0, calls = left_.load(std::memory_order_relaxed);
  for (const auto& [key, tally] : rows) {
    const auto& [communicator, collective, algorithm, transport] = key;
    const double microseconds = static_cast<double>(tally.nanoseconds) / 1e3;
    lines.push_back({shorten_name(communicator), std::string(to_string(collective)), algorithm,
                     transport, std::to_string(tally.calls), format_size(tally.bytes),
                     decimal(microseconds / 1e3, 3),
                     decimal(microseconds / static_cast<double>(tally.calls), 2)});
    total += microseconds;
    calls += tally.calls;
    if (transport != "mpi") carried += tally.calls;
  }
  const double seconds = std::chrono::duration<double>(passed).count();
  return align(lines) + "in all " + decimal(total / 1e3, 3) + " ms, " +
         decimal(total / 1e4 / seconds, 1) + " % of the " + decimal(seconds, 3) +
         " s since the first call; " + std::to_string(carried) + " of " + std::to_string(calls) +
         " calls carried, " +
         decimal(100 * static_cast<double>(carried) / static_cast<double>(calls), 1) + " %\n";
}

}  // namespace sluice
