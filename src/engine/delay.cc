// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/delay.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace sluice {
namespace {

// Removes and returns what precedes the first `mark`, or all.
std::string_view take_word(std::string_view* text, char mark) {
  const std::string_view word = text->substr(0, text->find(mark));
  text->remove_prefix(std::min(text->size(), word.size() + 1));
  return word;
}

template <typename Number>
bool parse_number(std::string_view text, Number* number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
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
    Item item;
    if (!parse_item(word, &item)) {
      return Status(Code::invalid,
                    "SLUICE_DELAY: '" + std::string(word) +
                        "' is not ALGORITHM:MICROSECONDS or ALGORITHM:MICROSECONDS:FIRST-LAST");
    }
    delay.items_.push_back(std::move(item));
  }
  return delay;
}

void Delay::prolong(std::string_view algorithm) {
  const Clock::time_point began = Clock::now();
  const uint64_t number = ++calls_;
  for (const Item& item : items_) {
    if (item.algorithm != algorithm || number < item.first || number > item.last) continue;
    const std::chrono::duration<double, std::micro> longer(item.microseconds);
    while (Clock::now() - began < longer) {
    }
  }
}

}  // namespace sluice
