// SPDX-License-Identifier: BSD-3-Clause
#include "osu/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

namespace sluice::osu {
namespace {

ByteRange parse_byte_range(const std::string& text, size_t least) {
  ByteRange range;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%zu:%zu%c", &range.min, &range.max, &rest) != 2 ||
      range.min < least || range.min > range.max) {
    throw CLI::ValidationError("--message-size", "'" + text + "' is not MIN:MAX in bytes");
  }
  return range;
}

}  // namespace

struct CommandLine::Parser {
  CLI::App app;
};

CommandLine::CommandLine(const std::string& help, const std::string& program)
    : parser_(new Parser{CLI::App(help, program)}) {}

CommandLine::~CommandLine() = default;

void CommandLine::number(const std::string& names, int* value, const std::string& help, int least,
                         int most) {
  parser_->app.add_option(names, *value, help)->check(CLI::Range(least, most));
}

void CommandLine::choice(const std::string& names, int* value, const std::string& help,
                         const std::vector<int>& choices) {
  parser_->app.add_option(names, *value, help)->check(CLI::IsMember(choices));
}

void CommandLine::flag(const std::string& names, bool* value, const std::string& help) {
  parser_->app.add_flag(names, *value, help);
}

void CommandLine::sizes(ByteRange* range, const std::string& help, size_t least) {
  const auto read = [range, least](const std::string& text) {
    *range = parse_byte_range(text, least);
  };
  parser_->app.add_option_function<std::string>("-m,--message-size", read, help)
      ->type_name("MIN:MAX");
}

void CommandLine::parse(int argc, char** argv) {
  try {
    parser_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(parser_->app.exit(error));
  }
}

}  // namespace sluice::osu
