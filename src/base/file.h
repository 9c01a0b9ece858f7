// SPDX-License-Identifier: BSD-3-Clause
//
// Files that users name: rules, certificates, keys, logs.
#pragma once

#include <cstddef>
#include <string>

#include "src/base/status.h"

namespace sluice {

// More than any such file has, and no burden for a process.
constexpr size_t most_file_bytes = size_t{16} << 20;

// What read_file takes; by default any regular file of at most so many bytes.
struct FileDemands {
  size_t most = most_file_bytes;
  bool is_closed = false;  // not all users may write it
  bool is_own = false;     // it belongs to this process's user or to root
};

// The content of a regular file, or of what a symbolic link leads to. Does not wait: a pipe, a
// device or a folder is an error, as is a file that is not as demanded. Code::invalid: "cannot read
// PATH: Is a directory". The content lies in one piece of memory, so erasing that erases a secret.
Result<std::string> read_file(const std::string& path, const FileDemands& demands = {});

// Whether there is anything by that name; a link that leads nowhere counts.
bool file_exists(const std::string& path);

// Puts a regular file with that content at the path, atomically: a process that reads meanwhile
// gets the old or the new content, never a mixture. Code::invalid: "cannot write PATH: Permission
// denied"; then nothing has changed.
Status replace_file(const std::string& path, const std::string& text);

}  // namespace sluice
