// SPDX-License-Identifier: BSD-3-Clause
//
// What the command prints: tables for people, JSON for programs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// A table whose columns are as wide as their longest cell, two spaces apart, without trailing
// spaces. Rows may have fewer cells than others. Without headings there is no heading line.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headings = {}, std::string indent = "  ");

  void add(std::vector<std::string> row);
  // Right-aligns this column.
  void right(size_t column);
  std::string text() const;

 private:
  std::string line(const std::vector<std::string>& row, const std::vector<size_t>& widths) const;

  std::vector<std::vector<std::string>> rows_;
  std::string indent_;
  std::vector<size_t> right_;
};

// 1048576 -> "1,048,576".
std::string with_commas(size_t number);
// 3 -> "3", 1.75 -> "1.75": at most four decimals, without trailing zeros.
std::string short_number(double number);

// "1 rank", "2 ranks".
std::string counted(size_t number, std::string_view noun);

// Writes one JSON value, member by member. Members of objects have a name; in arrays it is empty.
class Json {
 public:
  Json& open_object(std::string_view name = {});
  Json& open_array(std::string_view name = {});
  Json& close();
  Json& add(std::string_view name, std::string_view value);
  Json& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  Json& add(std::string_view name, bool value);
  Json& add(std::string_view name, size_t value);
  Json& add(std::string_view name, double value);

  const std::string& text() const { return text_; }

 private:
  void begin(std::string_view name);
  void open(std::string_view name, char bracket);

  std::string text_;
  std::string closing_;  // closing brackets still to write, innermost last
  bool first_ = true;    // nothing was added to the innermost bracket yet
};

}  // namespace sluice
