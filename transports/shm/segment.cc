// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

namespace sluice {
namespace {

constexpr int attempts = 4;  // at a name that nobody has

Status error(const std::string& what, int number) {
  char buffer[128] = "";
  return {Code::unavailable, what + ": " + strerror_r(number, buffer, sizeof(buffer))};
}

bool draw_name(Segment::Name* name) {
  uint64_t drawn[2];
  if (getrandom(drawn, sizeof(drawn), 0) != sizeof(drawn)) return false;
  std::snprintf(name->data(), name->size(), "/sluice-%016llx%08llx",
                static_cast<unsigned long long>(drawn[0]),
                static_cast<unsigned long long>(drawn[1] >> 32));
  return true;
}

std::byte* map(int file, size_t bytes) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

struct flock lock_of(short type, uint32_t index) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(index);
  lock.l_len = 1;
  return lock;
}

}  // namespace

Result<Segment> Segment::create(size_t bytes) {
  Name name{};
  int file = -1;
  for (int i = 0; i < attempts && file < 0; ++i) {
    if (!draw_name(&name)) return error("no random numbers", errno);
    file = shm_open(name.data(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 && errno != EEXIST) return error("/dev/shm", errno);
  }
  if (file < 0) return Status{Code::unavailable, "/dev/shm: every name is taken"};
  Segment segment(name, file, nullptr, bytes, true);
  if (const int failure = posix_fallocate(file, 0, static_cast<off_t>(bytes)); failure != 0) {
    return error("/dev/shm has no room for " + std::to_string(bytes) + " bytes", failure);
  }
  segment.data_ = map(file, bytes);
  if (segment.data_ == nullptr) return error("mapping /dev/shm", errno);
  return segment;
}

Result<Segment> Segment::open(const Name& name, size_t bytes) {
  const int file = shm_open(name.data(), O_RDWR | O_CLOEXEC, 0);
  if (file < 0) return error(std::string("/dev/shm") + name.data(), errno);
  Segment segment(name, file, nullptr, bytes, false);
  struct stat about {};
  if (fstat(file, &about) != 0 || about.st_uid != geteuid() ||
      about.st_size != static_cast<off_t>(bytes)) {
    return Status{Code::unavailable, std::string("/dev/shm") + name.data() + " is not ours"};
  }
  segment.data_ = map(file, bytes);
  if (segment.data_ == nullptr) return error("mapping /dev/shm", errno);
  return segment;
}

Segment::Segment(Segment&& other) noexcept
    : name_(other.name_),
      file_(std::exchange(other.file_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      named_(std::exchange(other.named_, false)) {}

Segment::~Segment() {
  remove_name();
  if (data_ != nullptr) munmap(data_, bytes_);
  if (file_ >= 0) ::close(file_);
}

void Segment::remove_name() {
  if (std::exchange(named_, false)) shm_unlink(name_.data());
}

bool Segment::sign(uint32_t index) {
  struct flock lock = lock_of(F_WRLCK, index);
  return fcntl(file_, F_SETLK, &lock) == 0;
}

bool Segment::lives(uint32_t index) const {
  struct flock lock = lock_of(F_WRLCK, index);
  return fcntl(file_, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace sluice
