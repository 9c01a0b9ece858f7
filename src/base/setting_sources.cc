// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/setting_sources.h"

#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "src/base/file.h"
#include "src/base/knobs.h"
#include "src/base/report_value.h"
#include "src/base/system_call.h"

namespace sluice {
namespace {

constexpr std::string_view blanks = " \t";
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// The line less its comment.
std::string_view without_comment(std::string_view line) {
  for (size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || blanks.find(line[at - 1]) != std::string_view::npos) return line.substr(0, at);
  }
  return line;
}

bool is_control(char c) { return (c >= 0 && c < ' ' && c != '\t') || c == '\x7f'; }

bool is_name(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos;
}

// Why the line is wrong; empty: it has been added, or has nothing to add.
std::string add_line(std::string_view line, size_t number, SettingsFile* file) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (std::ranges::any_of(line, is_control)) return "a control character: this is no text";
  line = trimmed(without_comment(line));
  if (line.empty()) return "";
  const size_t equals = line.find('=');
  const std::string_view name = trimmed(line.substr(0, equals));
  if (equals == std::string_view::npos || !is_name(name)) {
    return "not NAME=value, such as SLUICE_STATS=on";
  }
  const std::string_view value = trimmed(line.substr(equals + 1));
  if (value.starts_with('"') || value.starts_with('\'')) return "values are written without quotes";
  if (name == "SLUICE_CONFIG") return "SLUICE_CONFIG is for the environment alone";
  const auto has_name = [&](const SettingsFile::Line& each) { return each.name == name; };
  const auto first = std::ranges::find_if(file->lines, has_name);
  if (first != file->lines.end()) {
    return std::string(name) + " is set in line " + std::to_string(first->number) + " already";
  }
  file->lines.push_back({std::string(name), std::string(value), number});
  return "";
}

// Whether nothing can be there, for this user.
bool is_absent(const std::string& path) {
  struct stat about {};
  const int error = -system_call([&] { return stat(path.c_str(), &about); });
  return error == ENOENT || error == ENOTDIR || error == EACCES;
}

std::string users_file(const Environment& variables) {
  const auto folder_of = [&](const char* name) {
    const char* const text = variables(name);
    return std::string(text && *text == '/' ? text : "");
  };
  if (const std::string folder = folder_of("XDG_CONFIG_HOME"); !folder.empty()) {
    return folder + "/sluice.conf";
  }
  const std::string home = folder_of("HOME");
  return home.empty() ? "" : home + "/.config/sluice.conf";
}

void add_text(const std::string& path, const std::string& text, SettingSources* sources) {
  auto file = parse_settings(path, text);
  if (file.ok()) {
    sources->files.push_back(std::move(*file));
  } else {
    sources->problem = file.status();
  }
}

// A file that is read unless told otherwise.
void add_file(const std::string& path, bool is_own, SettingSources* sources) {
  if (path.empty() || is_absent(path) || !sources->problem.ok()) return;
  const auto text =
      read_file(path, {.most = most_settings_bytes, .is_closed = true, .is_own = is_own});
  const bool is_binary = text.ok() && text->find('\0') != std::string::npos;
  if (!text.ok() || is_binary) {
    const std::string why = is_binary ? path + " is no text" : text.status().message();
    sources->unused.push_back(why + "; no setting is taken from it");
    return;
  }
  add_text(path, *text, sources);
}

void add_named_file(const std::string& path, SettingSources* sources) {
  const auto text = read_file(path, {.most = most_settings_bytes, .is_closed = true});
  if (text.ok()) {
    add_text(path, *text, sources);
  } else {
    sources->problem = text.status().with("SLUICE_CONFIG");
  }
}

Environment without_paths(const Environment& variables) {
  return [variables](const char* name) {
    const bool leads_to_files = is_path_knob(name) || std::string_view(name) == "HOME";
    if (leads_to_files) return static_cast<const char*>(nullptr);
    const char* const text = variables(name);
    return text && names_report(name, text) ? nullptr : text;
  };
}

}  // namespace

Result<SettingsFile> parse_settings(const std::string& path, std::string_view text) {
  SettingsFile file{path, {}};
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string why = add_line(text.substr(0, end), number, &file);
    if (!why.empty())
      return Status(Code::invalid, path + ":" + std::to_string(number) + ": " + why);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return file;
}

SettingSources::Found SettingSources::find(const char* name) const {
  const char* const text = variables ? variables(name) : nullptr;
  if (text && *text) return {text, "environment", false};
  for (const SettingsFile& file : files) {
    for (const SettingsFile::Line& line : file.lines) {
      if (line.name != name || line.value.empty()) continue;
      return {line.value.c_str(), file.path + ":" + std::to_string(line.number), true};
    }
  }
  return {};
}

SettingSources find_settings(const Environment& variables, const std::string& site,
                             bool is_privileged) {
  SettingSources sources(is_privileged ? without_paths(variables) : variables);
  const char* const named = is_privileged ? nullptr : variables("SLUICE_CONFIG");
  if (named && std::string_view(named) == "none") return sources;
  if (named && *named) {
    add_named_file(named, &sources);
  } else {
    if (!is_privileged) add_file(users_file(variables), true, &sources);
    add_file(site, false, &sources);
  }
  if (!sources.problem.ok()) sources.files.clear();
  return sources;
}

bool is_privileged_process() { return getauxval(AT_SECURE) != 0; }

}  // namespace sluice
