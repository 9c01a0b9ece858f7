// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "src/base/write.h"

namespace sluice {
namespace {

constexpr size_t line_limit = 1000;
constexpr size_t prefix_limit = 100;

// Constant-initialised and trivially destroyed, so usable at load time and after exit handlers.
constinit std::mutex prefix_mutex;
constinit char prefix_text[prefix_limit + 1] = "";
constinit std::atomic<Level> shown{Level::warning};

const char* label(Level level) {
  switch (level) {
    case Level::error:
      return "error: ";
    case Level::warning:
      return "warning: ";
    case Level::info:
      return "";
    case Level::debug:
      return "debug: ";
  }
  return "";
}

size_t write_head(Level level, char* line) {
  const std::lock_guard lock(prefix_mutex);
  const char* separator = *prefix_text ? ": " : "";
  return static_cast<size_t>(
      snprintf(line, line_limit + 1, "sluice: %s%s%s", prefix_text, separator, label(level)));
}

void write_whole(std::string_view text) {
  if (write_all(STDERR_FILENO, text) != 0) return;  // nowhere left to report to
}

}  // namespace

void set_log_prefix(std::string_view prefix) {
  const std::lock_guard lock(prefix_mutex);
  const size_t size = std::min(prefix.size(), prefix_limit);
  memcpy(prefix_text, prefix.data(), size);
  prefix_text[size] = '\0';
}

void set_log_level(Level level) { shown.store(level, std::memory_order_relaxed); }

bool log_shown(Level level) { return level <= shown.load(std::memory_order_relaxed); }

void log(Level level, const char* format, ...) {
  if (!log_shown(level)) return;
  const int saved_errno = errno;
  char line[line_limit + 2];
  size_t size = write_head(level, line);
  va_list arguments;
  va_start(arguments, format);
  const int wanted = vsnprintf(line + size, line_limit + 1 - size, format, arguments);
  va_end(arguments);
  if (wanted > 0) size = std::min(line_limit, size + static_cast<size_t>(wanted));
  std::replace(line, line + size, '\n', ' ');
  line[size++] = '\n';
  write_whole({line, size});
  errno = saved_errno;
}

void log_lines(Level level, std::string_view lines) {
  if (!log_shown(level)) return;
  const int saved_errno = errno;
  char head[line_limit + 2];
  const std::string_view prefix(head, write_head(level, head));
  std::string text = "\n";
  for (size_t end = 0; !lines.empty(); lines.remove_prefix(end)) {
    end = std::min(lines.find('\n'), lines.size() - 1) + 1;
    text.append(prefix).append(lines.substr(0, end));
  }
  write_whole(text);
  errno = saved_errno;
}

}  // namespace sluice
