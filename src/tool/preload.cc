// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/preload.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

constexpr const char* library_name = "libsluice.so";
constexpr const char* audit_name = "libsluice-audit.so";

std::string absolute(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  if (!real) return "";
  const std::string result = real;
  free(real);
  return result;
}

// The folder that holds this command's file.
std::string own_folder() {
  const std::string self = own_file();
  return self.substr(0, self.rfind('/'));
}

// The folder that has this way from this command's which `configured` has from the configured one:
// itself unless the installation was copied or moved.
std::string beside_own(const char* configured) {
  const auto way = std::filesystem::path(configured).lexically_relative(SLUICE_BINDIR);
  return own_folder() + "/" + way.string();
}

// Where the library may be. In a build tree it is in libtool's .libs. An installed library is
// beside this command, as configured. If the installation was moved piece by piece, the library is
// in the lib folder beside this command's folder (also lib64, or a folder for each architecture),
// or still where it was configured. Without the package for developers there is only the name with
// its number.
std::vector<std::string> usual_places() {
  const std::string own = own_folder();
  const auto configured = std::string(SLUICE_LIBDIR);
  const std::string last = configured.substr(configured.rfind('/') + 1);
  std::vector<std::string> places;
  for (const std::string& folder : {own + "/.libs", own, beside_own(SLUICE_LIBDIR), own + "/../lib",
                                    own + "/../" + last, own + "/../lib/" + last, configured}) {
    for (const char* const ending : {"", ".0"}) {
      places.push_back(folder + "/" + library_name + ending);
    }
  }
  return places;
}

// One line of `ld.so --list`: "name => path (0x...)", "path (0x...)", "name => not found".
struct Entry {
  std::string name, path;
};

Entry parse_entry(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  line.remove_prefix(first);
  line = line.substr(0, line.rfind(" (0x"));
  const size_t arrow = line.find(" => ");
  if (arrow == std::string_view::npos) return {std::string(line), std::string(line)};
  const std::string path(line.substr(arrow + 4));
  return {std::string(line.substr(0, arrow)), path == "not found" ? "" : path};
}

std::vector<Entry> parse_list(std::string_view list) {
  std::vector<Entry> entries;
  while (!list.empty()) {
    const size_t end = std::min(list.find('\n'), list.size());
    entries.push_back(parse_entry(list.substr(0, end)));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return entries;
}

bool is_address_sanitizer(const std::string& name) {
  return name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan");
}

bool is_mpi(const std::string& name) {
  return name.starts_with("libmpi.so") || name.starts_with("libmpich.so") ||
         name.starts_with("libmpi_abi.so");
}

bool sets_the_same(std::string_view one, std::string_view other) {
  return one.substr(0, one.find('=')) == other.substr(0, other.find('='));
}

std::vector<std::string> environment_with(const std::vector<std::string>& settings) {
  std::vector<std::string> variables = settings;
  for (char** each = environ; *each; ++each) {
    const bool is_set_anew =
        std::any_of(settings.begin(), settings.end(),
                    [&](const auto& setting) { return sets_the_same(setting, *each); });
    if (!is_set_anew) variables.emplace_back(*each);
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return text;
    }
  }
}

// What came of a command.
struct Output {
  std::string text;  // its standard output and standard error
  bool is_good;      // its exit status was 0
};

// Runs a command with these settings ("NAME=VALUE") in its environment.
Result<Output> output_of(std::vector<std::string> command,
                         const std::vector<std::string>& settings) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status(Code::unavailable, strerror(errno));
  std::vector<std::string> variables = environment_with(settings);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, command.front().c_str(), &actions, nullptr,
                                pointers(command).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  const std::string text = error ? "" : read_all(ends[0]);
  close(ends[0]);
  if (error) return Status(Code::unavailable, command.front() + ": " + strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return Output{text, WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

std::string value_of(const char* variable) {
  const char* const value = getenv(variable);
  return value ? value : "";
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Whether LD_PRELOAD can name the file by its path.
bool is_preloadable(const std::string& path) {
  return path.find_first_of(" :") == std::string::npos;
}

// LD_LIBRARY_PATH with this folder at its end. (An empty item in it is the working folder.)
std::string library_path_with(const std::string& folder) {
  const std::string existing = value_of("LD_LIBRARY_PATH");
  if (existing.empty()) return folder;
  const bool has_it = (":" + existing + ":").find(":" + folder + ":") != std::string::npos;
  return has_it ? existing : existing + ":" + folder;
}

// Whether the dynamic linker can be told of the library (preload_of).
Status check_path(const std::string& library) {
  if (is_preloadable(library)) return {};
  const std::string file = file_name(library);
  const std::string folder = library.substr(0, library.size() - file.size());
  if (is_preloadable(file) && folder.find_first_of(":;") == std::string::npos) return {};
  return {Code::invalid,
          "LD_PRELOAD takes no file name with spaces or colons, and LD_LIBRARY_PATH no folder with "
          "colons or semicolons; name a link to the library that has none, by --library: " +
              library};
}

// "NAME=VALUE" for the environment.
std::vector<std::string> settings_of(const Preload& preload) {
  std::vector<std::string> settings{"LD_PRELOAD=" + preload.list};
  if (!preload.library_path.empty()) {
    settings.push_back("LD_LIBRARY_PATH=" + preload.library_path);
  }
  return settings;
}

// A list of libraries without this one, whatever its folder. Each that is left ends with ":".
std::string without(const std::string& list, const char* separators, const char* name,
                    const std::string& path) {
  std::string left;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find_first_of(separators, at), list.size());
    const std::string item = list.substr(at, end - at);
    const bool is_it = file_name(item) == name || item == file_name(path) || absolute(item) == path;
    if (!item.empty() && !is_it) left += item + ":";
    at = end + 1;
  }
  return left;
}

// The linker's lines that name the library; all of its output if none does.
std::string complaint(const std::string& said, const std::string& library) {
  std::string about;
  std::string_view rest = said;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    if (line.find(library) != std::string_view::npos) about += std::string(line) + "\n";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::string text = about.empty() ? said : about;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Result<std::string> find_library(const std::string& named) {
  if (!named.empty()) {
    const std::string path = absolute(named);
    if (path.empty()) {
      return Status(Code::invalid, "the library " + named + ": " + strerror(errno));
    }
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) {
      return Status(Code::invalid, "the library " + named + " is no regular file");
    }
    return path;
  }
  std::string looked;
  for (const std::string& place : usual_places()) {
    if (access(place.c_str(), R_OK) == 0) return absolute(place);
    looked += "\n  " + place;
  }
  return Status(Code::unavailable, std::string(library_name) +
                                       " is at none of its usual places; name it with --library "
                                       "PATH or SLUICE_LIBRARY. Looked at:" +
                                       looked);
}

std::string own_file() { return absolute("/proc/self/exe"); }

Result<std::string> find_program(const std::string& name) {
  const std::string own = own_folder();
  std::string looked;
  for (const std::string& place :
       {own + "/osu/", own + "/", beside_own(SLUICE_PKGLIBEXECDIR) + "/",
        own + "/../libexec/sluice/", std::string(SLUICE_PKGLIBEXECDIR) + "/"}) {
    if (access((place + name).c_str(), X_OK) == 0) return absolute(place + name);
    looked += "\n  " + place + name;
  }
  return Status(Code::unavailable, name + " is at none of its usual places. Looked at:" + looked);
}

Result<std::string> library_version(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!handle)
    return Status(Code::invalid, std::string("the library cannot be loaded: ") + dlerror());
  auto* version = reinterpret_cast<const char* (*)()>(dlsym(handle, "sluice_version"));
  if (!version) return Status(Code::invalid, library + " is not a library of Sluice");
  return std::string(version());  // the library stays loaded: it owns the text
}

std::vector<ServedMpi> served_mpis(const std::string& folder) {
  std::vector<ServedMpi> all{
      {"Open MPI", "openmpi", ""}, {"MPICH and its kin", "mpich", ""}, {"MPI 5's ABI", "mpi5", ""}};
  for (ServedMpi& each : all) {
    for (const char* place : {"/sluice/", "/"}) {
      const std::string path = folder + place + "libsluice-" + each.id + ".so";
      if (each.module.empty() && access(path.c_str(), R_OK) == 0) each.module = path;
    }
  }
  return all;
}

std::string audit_module(const std::string& folder) {
  for (const char* const place : {"/sluice/", "/"}) {
    const std::string path = folder + place + audit_name;
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return "";
}

Preload preload_of(const std::string& library) {
  const std::string others = without(value_of("LD_PRELOAD"), ": ", library_name, library);
  if (is_preloadable(library)) return {others + library, ""};
  return {others + file_name(library), library_path_with(library.substr(0, library.rfind('/')))};
}

void apply_preload(const Preload& preload) {
  setenv("LD_PRELOAD", preload.list.c_str(), 1);
  if (preload.library_path.empty()) return;
  setenv("LD_LIBRARY_PATH", preload.library_path.c_str(), 1);
}

std::string audit_value(const std::string& module, const std::string& existing) {
  const std::string others = without(existing, ":", audit_name, module);
  return others.empty() ? module : module + ":" + others.substr(0, others.size() - 1);
}

Result<Loaded> try_preload(const Program& program, const std::string& library,
                           const Preload& preload) {
  const Status path = check_path(library);
  if (!path.ok()) return path;
  const Result<Output> said =
      output_of({program.dynamic_linker, "--list", program.elf()}, settings_of(preload));
  if (!said.ok()) return said.status().with("the dynamic linker of " + program.elf());
  Loaded loaded;
  bool has_library = false;
  for (const Entry& entry : parse_list(said->text)) {
    has_library = has_library || entry.path == library;
    if (loaded.mpi.empty() && is_mpi(entry.name)) {
      loaded.mpi = entry.name;
      loaded.mpi_path = entry.path;
    }
    if (has_library && is_address_sanitizer(entry.name)) loaded.late_sanitizer = entry.path;
  }
  if (!has_library) {
    return Status(Code::invalid, "the dynamic linker would not load " + library + " into " +
                                     program.elf() + ":\n" + complaint(said->text, library));
  }
  return loaded;
}

Status try_audit(const Program& program, const std::string& module, const Preload& preload) {
  if (module.find(':') != std::string::npos) {
    return {Code::invalid, "LD_AUDIT takes no path with colons: " + module};
  }
  std::vector<std::string> settings = settings_of(preload);
  settings.push_back("LD_AUDIT=" + audit_value(module, value_of("LD_AUDIT")));
  settings.insert(settings.end(), {"LD_TRACE_LOADED_OBJECTS=1", "LD_WARN=yes"});
  const Result<Output> said = output_of({program.dynamic_linker, program.elf()}, settings);
  if (!said.ok()) return said.status().with("the dynamic linker of " + program.elf());
  if (said->text.find(module) != std::string::npos) {  // as what cannot be loaded
    return {Code::invalid, "the dynamic linker would not load " + module + " for " + program.elf() +
                               ":\n" + complaint(said->text, module)};
  }
  if (said->is_good) return {};
  return {Code::invalid, "the dynamic linker would not start " + program.elf() + " with " + module +
                             ":\n" + complaint(said->text, program.elf())};
}

}  // namespace sluice
