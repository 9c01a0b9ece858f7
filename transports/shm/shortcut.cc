// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/shortcut.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "transports/shm/ring.h"

namespace sluice {
namespace {

using Token = std::array<std::byte, 16>;

// What both map. Who made it writes to the first ring.
struct Shared {
  Token token;
  Ring rings[2];
};

// Where it is.
struct Offer {
  uint64_t process;
  uint64_t descriptor;
  Token token;
};
static_assert(sizeof(Offer) <= ShortcutMaker::max_offer);

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Status error(const std::string& what) {
  char buffer[128] = "";
  return {Code::unavailable, what + ": " + strerror_r(errno, buffer, sizeof(buffer))};
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }
  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

class Mapping {
 public:
  explicit Mapping(int file) {
    void* const data = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) return;
    madvise(data, sizeof(Shared), MADV_DONTFORK);
    shared_ = static_cast<Shared*>(data);
  }
  Mapping(Mapping&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() {
    if (shared_ != nullptr) munmap(shared_, sizeof(Shared));
  }
  explicit operator bool() const { return shared_ != nullptr; }
  Shared& operator*() const { return *shared_; }
  Shared* operator->() const { return shared_; }

 private:
  Shared* shared_ = nullptr;
};

class ShmShortcut final : public Shortcut {
 public:
  // side: 0 made it, and keeps the memory's descriptor until the peer has attached.
  ShmShortcut(Mapping mapping, Descriptor memory, int side, int socket)
      : mapping_(std::move(mapping)),
        memory_(std::move(memory)),
        socket_(socket),
        out_(mapping_->rings[side]),
        in_(mapping_->rings[1 - side]) {}

  Moved write(std::span<const iovec> runs) override {
    if (ended_) return {Moved::Result::failed, 0, error_ != 0 ? error_ : EPIPE};
    const size_t bytes = out_.write(runs);
    if (out_.corrupt()) return {Moved::Result::failed, 0, EPROTO};
    if (bytes == 0) return {Moved::Result::nothing};
    if (out_.wakes()) ring_bell();
    return {Moved::Result::some, bytes};
  }

  Moved read(std::span<const iovec> runs) override {
    const size_t bytes = in_.read(runs);
    if (in_.corrupt()) return {Moved::Result::failed, 0, EPROTO};
    if (bytes > 0) {
      if (bell_is_ours_ && in_.wakes()) ring_bell();
      return {Moved::Result::some, bytes};
    }
    // The end was noted before this look at the ring: nothing can have come since.
    if (!ended_) return {Moved::Result::nothing};
    if (error_ != 0) return {Moved::Result::failed, 0, error_};
    return {Moved::Result::closed};
  }

  void take_socket() override {
    bell_is_ours_ = true;
    memory_.close();
  }

  bool may_sleep(bool reads, bool writes) override {
    const bool waits = (!reads || in_.sleeps()) && (!writes || out_.sleeps());
    if (!waits) awake();
    return waits;
  }

  void awake() override {
    in_.awake();
    out_.awake();
  }

  bool hear() override {
    bool any = false;
    while (!ended_) {
      char bells[64];
      const ssize_t got = recv(socket_, bells, sizeof(bells), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      any = true;
      if (got > 0) continue;
      ended_ = true;
      error_ = got < 0 ? errno : 0;
    }
    return any;
  }

 private:
  // If the socket has no room, bells are on their way.
  void ring_bell() {
    const char bell = 0;
    while (send(socket_, &bell, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR) {
    }
  }

  Mapping mapping_;
  Descriptor memory_;
  const int socket_;
  RingWriter out_;
  RingReader in_;
  bool bell_is_ours_ = false;
  bool ended_ = false;  // the peer
  int error_ = 0;       // how
};

class ShmShortcuts final : public ShortcutMaker {
 public:
  const char* name() const override { return "shm"; }

  Result<Made> make(int socket) override {
    Offer offer{};
    if (getrandom(offer.token.data(), offer.token.size(), 0) !=
        static_cast<ssize_t>(offer.token.size())) {
      return error("no random numbers");
    }
    Descriptor memory(memfd_create("sluice", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (memory.fd() < 0 || ftruncate(memory.fd(), sizeof(Shared)) != 0 ||
        fcntl(memory.fd(), F_ADD_SEALS, seals) != 0) {
      return error("memfd_create");
    }
    Mapping mapping(memory.fd());
    if (!mapping) return error("mmap");
    mapping->token = offer.token;
    offer.process = static_cast<uint64_t>(getpid());
    offer.descriptor = static_cast<uint64_t>(memory.fd());
    Made made;
    made.offer.resize(sizeof(offer));
    std::memcpy(made.offer.data(), &offer, sizeof(offer));
    made.shortcut = std::make_unique<ShmShortcut>(std::move(mapping), std::move(memory), 0, socket);
    return made;
  }

  Result<std::unique_ptr<Shortcut>> attach(std::span<const std::byte> words, int socket) override {
    Offer offer;
    if (words.size() != sizeof(offer)) return Status(Code::invalid, "an offer of another kind");
    std::memcpy(&offer, words.data(), sizeof(offer));
    Descriptor memory(open(offer));
    if (memory.fd() < 0) return error("the peer's memory");
    if (fcntl(memory.fd(), F_GET_SEALS) != seals) {
      return Status(Code::unavailable, "the peer's memory is none that keeps its size");
    }
    Mapping mapping(memory.fd());
    if (!mapping) return error("mmap");
    if (mapping->token != offer.token) {
      return Status(Code::unavailable, "the peer's memory is not what it offered");
    }
    memory.close();
    return std::unique_ptr<Shortcut>(
        std::make_unique<ShmShortcut>(std::move(mapping), std::move(memory), 1, socket));
  }

 private:
  // Where the peer counts its processes differently, the name may be that of anything: nothing is
  // opened that is not such a file of this user's.
  static int open(const Offer& offer) {
    const std::string path =
        "/proc/" + std::to_string(offer.process) + "/fd/" + std::to_string(offer.descriptor);
    struct stat about {};
    if (stat(path.c_str(), &about) != 0) return -1;
    if (!S_ISREG(about.st_mode) || about.st_uid != geteuid() ||
        about.st_size != static_cast<off_t>(sizeof(Shared))) {
      errno = ENOENT;
      return -1;
    }
    return ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  }
};

}  // namespace

std::shared_ptr<ShortcutMaker> make_shm_shortcuts() { return std::make_shared<ShmShortcuts>(); }

}  // namespace sluice
