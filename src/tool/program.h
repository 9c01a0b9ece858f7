// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the file that a command line would run, and follows scripts to the ELF program that the
// dynamic linker loads. Only there does a preload take effect.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

struct Program {
  // The file of the command, then the interpreter of each script, last the ELF program.
  std::vector<std::string> chain;
  std::string dynamic_linker;  // the one that the ELF program names (PT_INTERP)

  const std::string& file() const { return chain.front(); }
  const std::string& elf() const { return chain.back(); }
};

// Looks the command up as execvp() does, and follows scripts. An error names the file that cannot
// take a preload, and why: it does not exist, is not executable, is statically linked, or is of
// another architecture; or the dynamic linker ignores preloads for it (setuid, setgid,
// capabilities).
Result<Program> resolve_program(const std::string& command);

}  // namespace sluice
