// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "src/base/system_call.h"
#include "src/base/write.h"

namespace sluice {
namespace {

constexpr size_t least_room = size_t{64} << 10;  // the kernel gives files of its own no size

// A negative number: an errno value, negated.
int open_file(const std::string& path, int flags) {
  constexpr mode_t mode = 0666;  // less the user's mask
  return system_call([&] { return open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode); });
}

// Until the end of the file or of the text. 0, or errno.
int fill(int fd, std::string* text) {
  size_t got = 0;
  while (got < text->size()) {
    const ssize_t more =
        system_call([&] { return read(fd, text->data() + got, text->size() - got); });
    if (more < 0) return static_cast<int>(-more);
    if (more == 0) break;
    got += static_cast<size_t>(more);
  }
  text->resize(got);
  return 0;
}

// Why the file is refused before it is read; empty: it is not.
std::string refusal(const struct stat& about, const FileDemands& demands) {
  if (S_ISDIR(about.st_mode)) return error_text(EISDIR);
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
  if (const int error = -system_call([&] { return fstat(fd, &about); })) return error_text(error);
  if (const std::string why = refusal(about, demands); !why.empty()) return why;
  const size_t expected = std::max(static_cast<size_t>(about.st_size), least_room);
  const size_t room = std::min(expected, demands.most) + 1;
  text->resize(room);
  if (const int error = fill(fd, text); error != 0) return error_text(error);
  return text->size() == room ? "it is too large, or grows" : "";
}

}  // namespace

Result<std::string> read_file(const std::string& path, const FileDemands& demands) {
  const auto fails = [&](const std::string& why) {
    return Status(Code::invalid, "cannot read " + path + ": " + why);
  };
  const int fd = open_file(path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return fails(error_text(-fd));
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

// 0, or errno; then there is no such file.
int make_file(const std::string& path, const std::string& text) {
  const int fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (fd < 0) return -fd;
  int error = write_all(fd, text);
  if (close(fd) != 0 && error == 0) error = errno;  // (It may not be closed twice.)
  if (error != 0) unlink(path.c_str());
  return error;
}

}  // namespace

// (No link is followed: what it leads to may be on another file system.)
Status replace_file(const std::string& path, const std::string& text) {
  const std::string made = path + ".new-" + std::to_string(getpid());
  int error = make_file(made, text);
  if (error == 0) {
    error = -system_call([&] { return rename(made.c_str(), path.c_str()); });
    if (error != 0) unlink(made.c_str());
  }
  if (error == 0) return {};
  return {Code::invalid, "cannot write " + path + ": " + error_text(error)};
}

}  // namespace sluice
