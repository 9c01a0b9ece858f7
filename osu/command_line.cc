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
  parser_->app.add_option(names, *value, help)->type_name("N")->check(CLI::Range(least, most));
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
  const std::string program = parser_->app.get_name();
  try {
    parser_->app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(parser_->app.help().c_str(), stdout);
    std::exit(exit_status(program.c_str(), true));
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s: %s (-h lists the options)\n", program.c_str(), error.what());
    std::exit(1);
  }
}

int exit_status(const char* program, bool good) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return good ? 0 : 1;
  std::fprintf(stderr, "%s: cannot write all of the output\n", program);
  return 1;
}

}  // namespace sluice::osu
