// SPDX-License-Identifier: BSD-3-Clause
//
// The command line of the programs beside the OSU benchmarks. It hides CLI11, which takes ten times
// as long to compile as such a program.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace sluice::osu {

struct ByteRange {
  size_t min = 4, max = size_t{4} << 20;
};

class CommandLine {
 public:
  CommandLine(const std::string& help, const std::string& program);
  ~CommandLine();

  // `names`: "-i,--iterations". The variable keeps its value if the option is missing. It must live
  // until parse() has returned.
  void number(const std::string& names, int* value, const std::string& help, int least, int most);
  void choice(const std::string& names, int* value, const std::string& help,
              const std::vector<int>& choices);
  void flag(const std::string& names, bool* value, const std::string& help);
  // -m, --message-size MIN:MAX in bytes, with MIN at least `least`.
  void sizes(ByteRange* range, const std::string& help, size_t least);

  // Prints help, or an error that names the program and the option, and exits if there is one.
  void parse(int argc, char** argv);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// What main returns. Prints an error if not all output could be written, on a full disk for
// example.
int exit_status(const char* program, bool good);

}  // namespace sluice::osu
