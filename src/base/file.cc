// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sluice {
namespace {

constexpr size_t least_room = size_t{64} << 10;  // the kernel gives files of its own no size

// Until the end of the file or of the text. 0, or errno.
int fill(int fd, std::string* text) {
  size_t got = 0;
  while (got < text->size()) {
    const ssize_t more = read(fd, text->data() + got, text->size() - got);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return errno;
    if (more == 0) break;
    got += static_cast<size_t>(more);
  }
  text->resize(got);
  return 0;
}

// Why it cannot be read; empty: it has been.
std::string read_from(int fd, std::string* text) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return strerror(errno);
  if (S_ISDIR(about.st_mode)) return strerror(EISDIR);
  if (!S_ISREG(about.st_mode)) return "it is no regular file";
  const size_t room =
      std::clamp(static_cast<size_t>(about.st_size), least_room, most_file_bytes) + 1;
  text->resize(room);
  if (const int error = fill(fd, text); error != 0) return strerror(error);
  return text->size() == room ? "it is too large, or grows" : "";
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const auto fails = [&](const std::string& why) {
    return Status(Code::invalid, "cannot read " + path + ": " + why);
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return fails(strerror(errno));
  std::string text;
  const std::string why = read_from(fd, &text);
  close(fd);
  if (!why.empty()) return fails(why);
  return text;
}

}  // namespace sluice
