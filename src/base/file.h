// SPDX-License-Identifier: BSD-3-Clause
//
// Reading files that users name: rules, certificates, keys, logs.
#pragma once

#include <cstddef>
#include <string>

#include "src/base/status.h"

namespace sluice {

// More than any such file has, and no burden for a process.
constexpr size_t most_file_bytes = size_t{16} << 20;

// The content of a regular file, or of what a symbolic link leads to. Does not wait: a pipe, a
// device or a folder is an error, as is a file of more than most_file_bytes. Code::invalid:
// "cannot read PATH: Is a directory". The content is in one piece of memory, so whoever erases a
// secret there has erased it.
Result<std::string> read_file(const std::string& path);

}  // namespace sluice
