// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/audit.h"

#include <gnu/libc-version.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace sluice {
namespace {

struct Interpreter {
  const char *name, *language;
};

// Programs' names, which a version may follow.
constexpr Interpreter interpreters[] = {
    {"dotnet", ".NET"},       {"guile", "Guile"}, {"java", "Java"},   {"julia", "Julia"},
    {"lua", "Lua"},           {"luajit", "Lua"},  {"mono", ".NET"},   {"node", "JavaScript"},
    {"octave", "Octave"},     {"perl", "Perl"},   {"pypy", "Python"}, {"python", "Python"},
    {"octave-cli", "Octave"}, {"R", "R"},         {"Rscript", "R"},   {"ruby", "Ruby"},
    {"sbcl", "Lisp"},
};

// The language that this file is an interpreter of; empty: none.
std::string language_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const Interpreter& each : interpreters) {
    if (!name.starts_with(each.name)) continue;
    const std::string_view rest = name.substr(std::string_view(each.name).size());
    if (rest.find_first_not_of("0123456789.-") == std::string_view::npos) return each.language;
  }
  return "";
}

std::string language_of(const Program& program) {
  for (const std::string& file : program.chain) {
    std::string language = language_of(file);
    if (!language.empty()) return language;
  }
  return "";
}

bool audits_each_call() {
  unsigned major = 0, minor = 0;
  if (sscanf(gnu_get_libc_version(), "%u.%u", &major, &minor) != 2) return false;
  return major < 2 || (major == 2 && minor < 35);
}

}  // namespace

Result<AuditChoice> choose_audit(AuditWish wish, const Program& program, const Loaded& loaded,
                                 const std::string& library, const Preload& preload) {
  AuditChoice choice;
  if (wish == AuditWish::no) return choice;
  if (wish == AuditWish::if_useful) {
    choice.language = loaded.mpi.empty() ? language_of(program) : "";
    if (choice.language.empty()) return choice;
  }
  const std::string module = audit_module(library.substr(0, library.rfind('/')));
  const Status status =
      module.empty()
          ? Status(Code::unavailable, "the module libsluice-audit.so is not beside " + library)
          : try_audit(program, module, preload);
  if (!status.ok() && wish == AuditWish::yes) return status;
  if (status.ok()) {
    choice.module = module;
  } else if (!module.empty()) {
    choice.problem = status.message();
  }
  return choice;
}

void apply_audit(const AuditChoice& choice) {
  if (choice.module.empty()) return;
  const char* const existing = getenv("LD_AUDIT");
  setenv("LD_AUDIT", audit_value(choice.module, existing ? existing : "").c_str(), 1);
  if (audits_each_call()) setenv("LD_BIND_NOW", "1", 0);
}

}  // namespace sluice
