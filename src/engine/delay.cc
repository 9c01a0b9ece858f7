// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/delay.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <thread>
#include <utility>

#include "collectives/algorithm.h"
#include "src/engine/routes.h"

namespace sluice {
namespace {

// Removes and returns what precedes the first `mark`, or all.
std::string_view take_word(std::string_view* text, char mark) {
  const std::string_view word = text->substr(0, text->find(mark));
  text->remove_prefix(std::min(text->size(), word.size() + 1));
  return word;
}

// An hour. Much longer ones would not fit in std::chrono::nanoseconds.
constexpr double most_microseconds = 3600e6;

// Shorter delays spin: to wake up takes some 50 microseconds.
constexpr std::chrono::milliseconds least_sleep{1};

template <typename Number>
bool parse_number(std::string_view text, Number* number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
}

// Of any collective, or another route.
bool is_algorithm(std::string_view name) {
  const auto is_it = [&](const Algorithm& each) { return each.name == name; };
  return std::ranges::any_of(algorithms(), is_it) ||
         std::ranges::any_of(routes::all, [&](const Algorithm* each) { return is_it(*each); });
}

}  // namespace

bool Delay::parse_item(std::string_view text, Item* item) {
  item->algorithm = take_word(&text, ':');
  const std::string_view microseconds = take_word(&text, ':');
  const std::string_view first = take_word(&text, '-'), last = text;
  item->first = 0;
  item->last = ~uint64_t{0};
  return !item->algorithm.empty() && parse_number(microseconds, &item->microseconds) &&
         item->microseconds >= 0 && std::isfinite(item->microseconds) &&
         (first.empty() || parse_number(first, &item->first)) &&
         (last.empty() || parse_number(last, &item->last)) && item->first <= item->last;
}

Result<Delay> Delay::parse(const std::string& text) {
  Delay delay;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = take_word(&rest, ',');
    if (word == "pretend") {
      delay.pretends_ = true;
      continue;
    }
    Item item;
    if (!parse_item(word, &item)) {
      return Status(Code::invalid,
                    "SLUICE_DELAY: '" + std::string(word) +
                        "' is not ALGORITHM:MICROSECONDS or ALGORITHM:MICROSECONDS:FIRST-LAST");
    }
    if (!is_algorithm(item.algorithm)) {
      return Status(Code::invalid,
                    "SLUICE_DELAY: no collective has an algorithm '" + item.algorithm + "'");
    }
    if (item.microseconds > most_microseconds) {
      return Status(Code::invalid, "SLUICE_DELAY: '" + std::string(word) +
                                       "' is more than 3600000000 microseconds, an hour");
    }
    delay.items_.push_back(std::move(item));
  }
  return delay;
}

std::chrono::nanoseconds Delay::find(std::string_view algorithm, uint64_t call) const {
  for (const Item& item : items_) {
    if (item.algorithm != algorithm || call < item.first || call > item.last) continue;
    return std::chrono::nanoseconds(static_cast<int64_t>(item.microseconds * 1000));
  }
  return {};
}

std::chrono::nanoseconds Delay::pretended(std::string_view algorithm) const {
  return pretends_ ? find(algorithm, calls_ + 1) : std::chrono::nanoseconds();
}

void Delay::prolong(std::string_view algorithm) {
  const Clock::time_point began = Clock::now();
  const std::chrono::nanoseconds longer = find(algorithm, ++calls_);
  if (pretends_) return;
  if (longer > least_sleep) std::this_thread::sleep_for(longer);
  while (Clock::now() - began < longer) {
  }
}

}  // namespace sluice
