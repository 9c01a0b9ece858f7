// SPDX-License-Identifier: BSD-3-Clause
//
// What a command line would really start: the file behind a name, through scripts to the ELF
// program that the dynamic linker will load, which is where a preload takes effect or does not.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

struct Program {
  // The file of the command, then the interpreters that scripts name, the ELF program last.
  std::vector<std::string> chain;
  std::string dynamic_linker;  // the one that the ELF program asks for

  const std::string& file() const { return chain.front(); }
  const std::string& elf() const { return chain.back(); }
};

// Looks the command up as execvp() would and follows it. Errors say which file will not take a
// preload and why: there is none, it is no executable, it is statically linked, it changes its user
// or has capabilities (the dynamic linker then ignores preloads), it is of another architecture.
Result<Program> resolve_program(const std::string& command);

}  // namespace sluice
