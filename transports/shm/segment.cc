// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/random.h"
#include "src/base/system_call.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

namespace sluice {
namespace {

constexpr const char* folder = "/dev/shm";
constexpr const char* name_format = "sluice-%" PRId32 "-%" PRIx64;

struct flock lock_of(short type, off_t first, off_t bytes) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = bytes;
  return lock;
}

// What memfd_create names the memory; shown under /proc, and not a name to open it by.
std::string label_of(const Segment::Handle& handle) {
  char text[32];
  std::snprintf(text, sizeof(text), "sluice-%" PRIx64, handle.number);
  return text;
}

Descriptor make_unnamed(const std::string& label) {
  const auto make = [&](unsigned flags) {
    flags |= MFD_CLOEXEC | MFD_ALLOW_SEALING;
    return system_call([&] { return memfd_create(label.c_str(), flags); });
  };
  const int file = make(MFD_NOEXEC_SEAL);
  return Descriptor(file == -EINVAL ? make(0) : file);  // before Linux 6.3
}

// A call that returns 0, as a Status.
template <typename Call>
Status attempt(const std::string& what, Call call) {
  const int error = -system_call(call);
  return error == 0 ? Status() : system_error(what, error);
}

// In /dev/shm, without a name yet.
Descriptor make_nameless() {
  return Descriptor(system_call([] { return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }));
}

bool has_label(const Segment::Handle& handle) {
  char text[64] = "";
  const ssize_t size = readlink(handle.path().c_str(), text, sizeof(text));
  return size > 0 && std::string_view(text, static_cast<size_t>(size)) ==
                         "/memfd:" + label_of(handle) + " (deleted)";
}

// This memory counts as the size of a file. Beyond the process's limit the kernel sends SIGXFSZ,
// which ends the process.
bool is_within_limit(size_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

bool is_same(const struct stat& about, const Segment::Handle& handle, size_t bytes) {
  return S_ISREG(about.st_mode) && about.st_dev == handle.device && about.st_ino == handle.inode &&
         about.st_size == static_cast<off_t>(bytes);
}

bool is_own_file(const struct stat& about) {
  return S_ISREG(about.st_mode) && about.st_uid == geteuid();
}

// Whether this is the name of a file that no process has locked: its maker died before all had
// opened it. Checks the owner first, since opening another user's file may block (a lease in
// fcntl(2), a FIFO).
bool is_stale(const char* name, const std::string& path) {
  int32_t process = 0;
  uint64_t number = 0;
  if (std::sscanf(name, "sluice-%" SCNd32 "-%" SCNx64, &process, &number) != 2) return false;
  struct stat about {};
  if (lstat(path.c_str(), &about) != 0 || !is_own_file(about)) return false;
  const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file || fstat(file.fd(), &about) != 0 || !is_own_file(about)) return false;
  struct flock lock = lock_of(F_WRLCK, 0, 0);
  return fcntl(file.fd(), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

void remove_stale_names() {
  DIR* const list = opendir(folder);
  if (list == nullptr) return;
  while (const dirent* entry = readdir(list)) {
    const std::string path = std::string(folder) + "/" + entry->d_name;
    if (is_stale(entry->d_name, path)) unlink(path.c_str());
  }
  closedir(list);
}

}  // namespace

std::string Segment::Handle::path() const {
  char text[80];
  if (!has_name()) {
    std::snprintf(text, sizeof(text), "/proc/%" PRId32 "/fd/%" PRId32, process, file);
    return text;
  }
  std::snprintf(text, sizeof(text), name_format, process, number);
  return std::string(folder) + "/" + text;
}

Segment::Segment(const Handle& handle, Descriptor file, size_t bytes)
    : handle_(handle), file_(std::move(file)), bytes_(bytes), process_(getpid()) {}

Result<Segment> Segment::create(size_t bytes, Way way) {
  Handle handle;
  if (way == Way::named) remove_stale_names();
  if (Status status = draw_random(&handle.number, sizeof(handle.number)); !status.ok()) {
    return status;
  }
  if (!is_within_limit(bytes)) return system_error("making shared memory", EFBIG);
  Descriptor file = way == Way::unnamed ? make_unnamed(label_of(handle)) : make_nameless();
  if (!file) return system_error(way == Way::unnamed ? "memfd_create" : folder, file.error());
  const int fd = file.fd();
  handle.process = getpid();
  handle.file = way == Way::unnamed ? fd : -1;
  Segment segment(handle, std::move(file), bytes);
  struct stat about {};
  const Status made = attempt("making shared memory", [&] {
    const bool done = fchmod(fd, 0600) == 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
                      fstat(fd, &about) == 0;
    return done ? 0 : -1;
  });
  if (!made.ok()) return made;
  segment.handle_.device = about.st_dev;
  segment.handle_.inode = about.st_ino;
  const auto seal = [&] { return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW); };
  const Status sealed = way == Way::unnamed ? attempt("sealing shared memory", seal) : Status();
  if (!sealed.ok()) return sealed;
  if (Status status = segment.map(); !status.ok()) return status;
  return segment;
}

// Checks the file before it opens it: in another process namespace these numbers denote other
// processes, and opening one of their files can have any effect.
Result<Segment> Segment::open(const Handle& handle, size_t bytes) {
  const std::string path = handle.path();
  const bool has_name = handle.has_name();  // else the path is a link to the file
  struct stat about {};
  const Status found =
      attempt(path, [&] { return (has_name ? lstat : stat)(path.c_str(), &about); });
  if (!found.ok()) return found;
  const Status other{Code::unavailable, path + " is something else here"};
  if (!is_same(about, handle, bytes) || !(has_name || has_label(handle))) return other;
  const int flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | (has_name ? O_NOFOLLOW : 0);
  Descriptor file(system_call([&] { return ::open(path.c_str(), flags); }));
  if (!file) return system_error(path, file.error());
  const int fd = file.fd();
  Segment segment(handle, std::move(file), bytes);
  if (fstat(fd, &about) != 0 || !is_same(about, handle, bytes)) return other;
  // A process that could shrink the file could crash this one.
  if (!has_name && (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0) return other;
  if (Status status = segment.map(); !status.ok()) return status;
  return segment;
}

Status Segment::map() {
  constexpr const char* mapping = "mapping shared memory";
  void* data = nullptr;
  const Status mapped = attempt(mapping, [&] {
    data = mmap(nullptr, bytes_, PROT_NONE, MAP_SHARED, file_.fd(), 0);
    return data == MAP_FAILED ? -1 : 0;
  });
  if (!mapped.ok()) return mapped;
  data_ = static_cast<std::byte*>(data);
  // (After mlockall(MCL_FUTURE), the kernel allocates all memory that is writable when mapped. So
  // this maps it inaccessible first.)
  const Status writable =
      attempt(mapping, [&] { return mprotect(data, bytes_, PROT_READ | PROT_WRITE); });
  if (!writable.ok()) return writable;
  const Status own =
      attempt("keeping memory from children", [&] { return madvise(data, bytes_, MADV_DONTFORK); });
  if (!own.ok()) return own;
  // Most pages of a segment have no memory. Huge pages would allocate some, and a core dump would
  // visit all of them.
  (void)madvise(data, bytes_, MADV_NOHUGEPAGE);
  (void)madvise(data, bytes_, MADV_DONTDUMP);
  return {};
}

Segment::Segment(Segment&& other) noexcept
    : handle_(other.handle_),
      file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      named_(std::exchange(other.named_, false)),
      process_(other.process_) {}

// (In a child, nothing or something else is mapped there.)
Segment::~Segment() {
  remove_name();
  if (data_ != nullptr && is_ours()) munmap(data_, bytes_);
}

Status Segment::reserve(size_t offset, size_t bytes) {
  int failure = is_within_limit(offset + bytes) ? EINTR : EFBIG;
  while (failure == EINTR) {
    failure = posix_fallocate(file_.fd(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  }
  if (failure == 0) return {};
  const std::string where = handle_.has_name() ? folder : "shared memory";
  return system_error(where + " has no room for " + std::to_string(bytes) + " bytes", failure);
}

void Segment::release(size_t offset, size_t bytes) {
  (void)fallocate(file_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

Status Segment::give_name() {
  if (!handle_.has_name()) return {};
  const std::string here = "/proc/self/fd/" + std::to_string(file_.fd());
  const std::string path = handle_.path();
  const Status linked = attempt(folder, [&] {
    return linkat(AT_FDCWD, here.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW);
  });
  named_ = linked.ok();
  return linked;
}

void Segment::remove_name() {
  if (std::exchange(named_, false) && is_ours()) unlink(handle_.path().c_str());
}

bool Segment::sign(uint32_t index) {
  struct flock lock = lock_of(F_WRLCK, static_cast<off_t>(index), 1);
  return fcntl(file_.fd(), F_OFD_SETLK, &lock) == 0;
}

bool Segment::lives(uint32_t index) const {
  struct flock lock = lock_of(F_WRLCK, static_cast<off_t>(index), 1);
  return fcntl(file_.fd(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool Segment::is_ours() const { return getpid() == process_; }

}  // namespace sluice
