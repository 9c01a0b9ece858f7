// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/text.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "src/base/plain_text.h"

namespace sluice {
namespace {

// Counts characters, not bytes of UTF-8.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// The bytes of the character that the text begins with; 0: it is not UTF-8.
size_t utf8_size(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  const size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  unsigned code = first & (0x7fU >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  const bool is_short = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  return first > 0xf4 || code > 0x10ffff || (size == 3 && is_surrogate) || is_short ? 0 : size;
}

std::string json_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const size_t size = utf8_size(text.substr(at));
    at += std::max(size, size_t{1});
    if (size == 0) {
      quoted += "\\ufffd";  // as a terminal shows it
    } else if (size > 1) {
      quoted += text.substr(at - size, size);
    } else if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace

TextTable::TextTable(std::vector<std::string> headings, std::string indent)
    : indent_(std::move(indent)) {
  if (!headings.empty()) rows_.push_back(std::move(headings));
}

void TextTable::add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

void TextTable::right(size_t column) { right_.push_back(column); }

std::string TextTable::line(const std::vector<std::string>& row,
                            const std::vector<size_t>& widths) const {
  std::string text;
  for (size_t column = 0; column < row.size(); ++column) {
    const std::string padding(widths[column] - width_of(row[column]), ' ');
    const bool flush = std::find(right_.begin(), right_.end(), column) != right_.end();
    text +=
        (column == 0 ? indent_ : "  ") + (flush ? padding + row[column] : row[column] + padding);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string TextTable::text() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  }
  std::string text;
  for (const auto& row : rows_) text += line(row, widths);
  return text;
}

std::string with_commas(size_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string short_number(double number) {
  std::string shortened = decimal(number, 4);
  shortened.erase(shortened.find_last_not_of('0') + 1);
  if (shortened.ends_with('.')) shortened.pop_back();
  return shortened;
}

std::string counted(size_t number, std::string_view noun) {
  return with_commas(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

void Json::begin(std::string_view name) {
  if (!first_) text_ += ',';
  if (!closing_.empty()) text_ += "\n" + std::string(2 * closing_.size(), ' ');
  if (!name.empty()) text_ += json_quoted(name) + ": ";
  first_ = false;
}

void Json::open(std::string_view name, char bracket) {
  begin(name);
  text_ += bracket;
  closing_ += bracket == '{' ? '}' : ']';
  first_ = true;
}

Json& Json::open_object(std::string_view name) {
  open(name, '{');
  return *this;
}

Json& Json::open_array(std::string_view name) {
  open(name, '[');
  return *this;
}

Json& Json::close() {
  const char bracket = closing_.back();
  closing_.pop_back();
  if (!first_) text_ += "\n" + std::string(2 * closing_.size(), ' ');
  text_ += bracket;
  first_ = false;
  if (closing_.empty()) text_ += '\n';
  return *this;
}

Json& Json::add(std::string_view name, std::string_view value) {
  begin(name);
  text_ += json_quoted(value);
  return *this;
}

Json& Json::add(std::string_view name, bool value) {
  begin(name);
  text_ += value ? "true" : "false";
  return *this;
}

Json& Json::add(std::string_view name, size_t value) {
  begin(name);
  text_ += std::to_string(value);
  return *this;
}

Json& Json::add(std::string_view name, double value) {
  begin(name);
  text_ += short_number(value);
  return *this;
}

}  // namespace sluice
