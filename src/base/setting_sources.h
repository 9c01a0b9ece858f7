// SPDX-License-Identifier: BSD-3-Clause
//
// Where settings come from: variables, the user's file, the site's file, in this order. A file has
// lines NAME=value; comments begin with # at the line's beginning or behind a blank; blanks around
// name and value do not count, nor do the carriage returns and the byte order mark of some editors.
// man/sluice-settings.5, FILES, says the same to users.
//
// A file that should not be used is harmless: find_settings leaves it out and says why. A file that
// SLUICE_CONFIG names must be usable, and each line must be valid; otherwise that is an error, like
// a variable's value that is not accepted.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace sluice {

// Reads one variable; nullptr if unset. Programs pass getenv, tests a map.
using Environment = std::function<const char*(const char* name)>;

// The content of one file. No name comes twice.
struct SettingsFile {
  struct Line {
    std::string name, value;
    size_t number;  // from 1
  };
  std::string path;
  std::vector<Line> lines;
};

// More than any file of settings has.
constexpr size_t most_settings_bytes = size_t{64} << 10;

// Code::invalid, "PATH:LINE: why": a line is neither NAME=value nor a comment, its value is in
// quotes, a name comes twice, or there are control characters (it is no text). Names are not looked
// up here.
Result<SettingsFile> parse_settings(const std::string& path, std::string_view text);

// The variables and files of a process.
struct SettingSources {
  struct Found {
    const char* text = nullptr;  // lives as long as the sources; nullptr: unset
    std::string origin;          // "environment", or "FILE:LINE"
    bool in_file = false;
  };

  SettingSources(Environment of = {}) : variables(std::move(of)) {}  // NOLINT: implicit by intent

  // An empty value counts as unset: the next source is asked.
  Found find(const char* name) const;

  Environment variables;
  std::vector<SettingsFile> files;  // the first that has a name wins
  std::vector<std::string> unused;  // a line for each file that was left out, with the reason
  Status problem;                   // then there are no files
};

// Reads the file that SLUICE_CONFIG names; without that, sluice.conf in $XDG_CONFIG_HOME
// ($HOME/.config), and `site`. With SLUICE_CONFIG=none it reads no file. `is_privileged`: the
// process has more rights than the user who started it (set-user-id). It then reads only `site`: a
// path or HOME from variables would make it open the user's files with its own rights. A file is
// ignored if it cannot be read, is not a regular file, contains a zero byte, is larger than
// most_settings_bytes, or is writable by all users. The user's file is also ignored if it belongs
// to neither this user nor root. A missing file counts as empty. May block as opening a file does,
// and throw std::bad_alloc.
SettingSources find_settings(const Environment& variables, const std::string& site,
                             bool is_privileged);

// Whether the kernel started this process with more rights than its user has.
bool is_privileged_process();

}  // namespace sluice
