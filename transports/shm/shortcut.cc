// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/shortcut.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/shm/ring.h"
#include "transports/shm/segment.h"

namespace sluice {
namespace {

// The mapped memory. The process that made it writes to the first ring.
struct Rings {
  Ring rings[2];
};

using Offer = Segment::Handle;
static_assert(sizeof(Offer) <= ShortcutMaker::max_offer);

class ShmShortcut final : public Shortcut {
 public:
  // side: 0 made the segment, 1 opened it.
  ShmShortcut(Segment segment, int side, int socket)
      : segment_(std::move(segment)), socket_(socket), out_(rings()[side]), in_(rings()[1 - side]) {
    if (side == 1) segment_.close_file();
  }

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
    // The peer's end was noted before this look at the ring, so no more bytes can come.
    if (!ended_) return {Moved::Result::nothing};
    if (error_ != 0) return {Moved::Result::failed, 0, error_};
    return {Moved::Result::closed};
  }

  // The peer has opened the segment by now.
  void take_socket() override {
    bell_is_ours_ = true;
    segment_.close_file();
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
  Ring* rings() const { return reinterpret_cast<Rings*>(segment_.data())->rings; }

  // If the socket has no room, it holds doorbell bytes that the peer has not read yet.
  void ring_bell() {
    const char bell = 0;
    while (send(socket_, &bell, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR) {
    }
  }

  Segment segment_;
  const int socket_;
  RingWriter out_;
  RingReader in_;
  bool bell_is_ours_ = false;
  bool ended_ = false;  // the peer has closed the socket, or it failed
  int error_ = 0;       // errno if it failed
};

class ShmShortcuts final : public ShortcutMaker {
 public:
  const char* name() const override { return "shm"; }

  Result<Made> make(int socket) override {
    auto segment = Segment::create(sizeof(Rings), Segment::Way::unnamed);
    if (!segment.ok()) return segment.status();
    const Offer offer = segment->handle();
    Made made;
    made.offer.resize(sizeof(offer));
    std::memcpy(made.offer.data(), &offer, sizeof(offer));
    made.shortcut = std::make_unique<ShmShortcut>(std::move(*segment), 0, socket);
    return made;
  }

  Result<std::unique_ptr<Shortcut>> attach(std::span<const std::byte> words, int socket) override {
    Offer offer;
    if (words.size() != sizeof(offer)) return Status(Code::invalid, "an offer of another kind");
    std::memcpy(&offer, words.data(), sizeof(offer));
    if (offer.number != 0) return Status(Code::invalid, "an offer of memory that has a name");
    auto segment = Segment::open(offer, sizeof(Rings));
    if (!segment.ok()) return segment.status();
    return std::unique_ptr<Shortcut>(std::make_unique<ShmShortcut>(std::move(*segment), 1, socket));
  }
};

}  // namespace

std::shared_ptr<ShortcutMaker> make_shm_shortcuts() { return std::make_shared<ShmShortcuts>(); }

}  // namespace sluice
