// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
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

// Why the file is refused before it is read; empty: it is not.
std::string refusal(const struct stat& about, const FileDemands& demands) {
  if (S_ISDIR(about.st_mode)) return strerror(EISDIR);
  if (!S_ISREG(about.st_mode)) return "it is no regular file";
  if (demands.is_closed && (about.st_mode & S_IWOTH) != 0) return "all users may write it";
  if (demands.is_own && about.st_uid != 0 && about.st_uid != geteuid()) {
    return "it belongs to another user";
  }
  return "";
}

// Why it cannot be read; empty: it has been.
std::string read_from(int fd, const FileDemands& demands, std::string* text) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return strerror(errno);
  if (const std::string why = refusal(about, demands); !why.empty()) return why;
  const size_t expected = std::max(static_cast<size_t>(about.st_size), least_room);
  const size_t room = std::min(expected, demands.most) + 1;
  text->resize(room);
  if (const int error = fill(fd, text); error != 0) return strerror(error);
  return text->size() == room ? "it is too large, or grows" : "";
}

}  // namespace

Result<std::string> read_file(const std::string& path, const FileDemands& demands) {
  const auto fails = [&](const std::string& why) {
    return Status(Code::invalid, "cannot read " + path + ": " + why);
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return fails(strerror(errno));
  std::string text;
  const std::string why = read_from(fd, demands, &text);
  close(fd);
  if (!why.empty()) return fails(why);
  return text;
}

bool file_exists(const std::string& path) {
  struct stat about {};
  return lstat(path.c_str(), &about) == 0;
}

namespace {

// 0, or errno.
int write_to(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t more = write(fd, text.data() + done, text.size() - done);
    if (more < 0 && errno != EINTR) return errno;
    if (more > 0) done += static_cast<size_t>(more);
  }
  return 0;
}

// 0, or errno; then there is no such file.
int make_file(const std::string& path, const std::string& text) {
  constexpr mode_t mode = 0666;  // less the user's mask
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, mode);
  if (fd < 0) return errno;
  int error = write_to(fd, text);
  if (close(fd) != 0 && error == 0) error = errno;
  if (error != 0) unlink(path.c_str());
  return error;
}

}  // namespace

// (No link is followed: what it leads to may be on another file system.)
Status replace_file(const std::string& path, const std::string& text) {
  const std::string made = path + ".new-" + std::to_string(getpid());
  int error = make_file(made, text);
  if (error == 0 && rename(made.c_str(), path.c_str()) != 0) {
    error = errno;
    unlink(made.c_str());
  }
  if (error == 0) return {};
  return {Code::invalid, "cannot write " + path + ": " + strerror(error)};
}

}  // namespace sluice
