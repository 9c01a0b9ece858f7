// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/report.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "src/tool/preload.h"

namespace sluice {

Status report(const ReportOptions& options) {
  const Result<std::string> program = find_program("report/report");
  if (!program.ok()) return program.status();
  // (-B: what it compiles is not for the folder of programs.)
  std::vector<std::string> words = {"python3", "-B", *program};
  if (!options.output.empty()) words.insert(words.end(), {"-o", options.output});
  if (options.png) words.emplace_back("--png");
  words.emplace_back("--");
  words.insert(words.end(), options.files.begin(), options.files.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  unsetenv("LD_PRELOAD");  // (it is no MPI program)
  execvp("python3", pointers.data());
  return {Code::unavailable,
          std::string("it is a program in Python, and python3 cannot be started: ") +
              strerror(errno) + ". On Debian and Ubuntu: apt-get install python3-matplotlib"};
}

}  // namespace sluice
