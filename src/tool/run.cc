// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/run.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "src/base/knobs.h"
#include "src/tool/audit.h"
#include "src/tool/build.h"
#include "src/tool/preload.h"
#include "src/tool/program.h"

namespace sluice {
namespace {

std::string full_name(std::string name) {
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name.starts_with("SLUICE_") ? name : "SLUICE_" + name;
}

// Puts "KNOB=VALUE" into the environment, which the program inherits.
Status apply_setting(const std::string& setting) {
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    return {Code::invalid, "--set " + setting + ": it takes KNOB=VALUE, such as segment=64k"};
  }
  const std::string name = full_name(setting.substr(0, equals));
  const std::string line = name + setting.substr(equals);
  const char* const lines[] = {line.c_str(), nullptr};
  const std::vector<std::string> unknown = unknown_knobs(lines);
  if (!unknown.empty()) return {Code::invalid, "--set " + setting + ": " + unknown.front()};
  setenv(name.c_str(), setting.c_str() + equals + 1, 1);
  return {};
}

Status apply_settings(const PreloadOptions& options, Knobs* knobs) {
  for (const std::string& setting : options.settings) {
    const Status status = apply_setting(setting);
    if (!status.ok()) return status;
  }
  if (options.stats) setenv("SLUICE_STATS", "on", 1);
  return read_knobs(setting_sources(), knobs);
}

// In quotes for a shell.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string quoted_if_needed(const std::string& word) {
  const bool is_plain =
      !word.empty() && word.find_first_of(" \t\r\n'\"\\$&|;<>()[]{}*?!#~`") == std::string::npos;
  return is_plain ? word : quoted(word);
}

std::string quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += quoted_if_needed(word);
  }
  return line;
}

// "NAME=VALUE" of this process's environment.
std::string setting_of(const std::string& variable) {
  return variable + "=" + quoted_if_needed(getenv(variable.c_str()));
}

// Why the audit module is loaded, if nobody asked for it.
std::string reason(const AuditChoice& audit) {
  return audit.language + " may take MPI's functions from the MPI library's handle";
}

void describe(const PreloadOptions& options, const Program& program, const Loaded& loaded,
              const std::string& library, const Preload& preload, const AuditChoice& audit) {
  printf("program      %s\n", program.file().c_str());
  for (size_t i = 1; i < program.chain.size(); ++i) {
    printf("  run by     %s\n", program.chain[i].c_str());
  }
  printf("library      %s: would be loaded\n", library.c_str());
  if (!audit.module.empty()) {
    printf("audit        %s: would be loaded%s\n", audit.module.c_str(),
           audit.language.empty() ? "" : (": " + reason(audit)).c_str());
  } else if (!audit.problem.empty()) {
    printf("audit        none: %s\n", audit.problem.c_str());
  }
  if (loaded.mpi.empty()) {
    printf("MPI          not linked with one itself; it may load one later\n");
  } else {
    printf("MPI          %s => %s\n", loaded.mpi.c_str(), loaded.mpi_path.c_str());
  }
  for (const KnobValue& each : knob_values(setting_sources())) {
    if (each.is_default()) continue;
    const std::string from = each.origin == "environment" ? "" : "  (" + each.origin + ")";
    printf("setting      %s=%s%s\n", each.knob->name, each.value.c_str(), from.c_str());
  }
  std::string settings;
  if (!audit.module.empty()) settings += setting_of("LD_AUDIT") + " ";
  if (!preload.library_path.empty()) settings += setting_of("LD_LIBRARY_PATH") + " ";
  settings += setting_of("LD_PRELOAD");
  printf("would start  %s %s\n", settings.c_str(), quoted(options.command).c_str());
}

// Whether this process speaks for its job, as far as launchers tell the rank.
bool is_first_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* const rank = getenv(name);
    if (rank && strcmp(rank, "0") != 0) return false;
  }
  return true;
}

// Says so where the module was chosen here, or could not be: once a job.
void tell(const AuditChoice& audit) {
  if (audit.language.empty() || !is_first_rank()) return;
  if (!audit.module.empty()) {
    fprintf(stderr,
            "sluice: %s, so those get Sluice's by libsluice-audit.so (--no-audit: MPI's own)\n",
            reason(audit).c_str());
  } else if (!audit.problem.empty()) {
    fprintf(stderr, "sluice: warning: %s, and those are MPI's own: %s\n", reason(audit).c_str(),
            audit.problem.c_str());
  }
}

Status start(const std::string& file, const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(file.c_str(), arguments.data());
  return {Code::invalid, file + " cannot be started: " + strerror(errno)};
}

}  // namespace

Status run(const PreloadOptions& options) {
  Knobs knobs;
  const Status settings = apply_settings(options, &knobs);
  if (!settings.ok()) return settings;
  const Result<std::string> library =
      find_library(options.library.empty() ? knobs.library : options.library);
  if (!library.ok()) return library.status();
  const Result<std::string> version = library_version(*library);
  if (!version.ok()) return version.status();
  const Result<Program> program = resolve_program(options.command.front());
  if (!program.ok()) return program.status();
  Preload preload = preload_of(*library);
  const Result<Loaded> loaded = try_preload(*program, *library, preload);
  if (!loaded.ok()) return loaded.status();
  if (!loaded->late_sanitizer.empty()) preload.list.insert(0, loaded->late_sanitizer + ":");
  const Result<AuditChoice> audit =
      choose_audit(options.audit, *program, *loaded, *library, preload);
  if (!audit.ok()) return audit.status();
  apply_preload(preload);
  apply_audit(*audit);
  if (options.dry_run) {
    describe(options, *program, *loaded, *library, preload, *audit);
    return {};
  }
  tell(*audit);
  return start(program->file(), options.command);
}

}  // namespace sluice
