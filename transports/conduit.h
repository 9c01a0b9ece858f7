// SPDX-License-Identifier: BSD-3-Clause
//
// A conduit is a byte stream between two processes, in order, in both directions. It carries the
// frames of one link, which knows it only by this contract: a socket, a ring in shared memory that
// replaces the socket, or a filter over either. Nothing here blocks. The endpoint's lock guards it.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "src/base/status.h"

namespace sluice {

class Conduit {
 public:
  struct Moved {
    enum class Result { some, nothing, closed, failed };
    Result result;
    size_t bytes = 0;  // if some
    int error = 0;     // errno if it failed
  };

  virtual ~Conduit() = default;

  // Writes the runs in order, as many bytes as there is room for now. Result `nothing`: no room.
  // Written bytes arrive even if this process ends right after. `failed` with EPIPE, ECONNRESET or
  // ETIMEDOUT: the peer is gone, but what it sent before may still be read.
  virtual Moved write(std::span<const iovec> runs) = 0;
  // Fills the runs in order with what has arrived. Result `closed`: everything has been read, and
  // the peer sends no more.
  virtual Moved read(std::span<const iovec> runs) = 0;
};

// An upgrade: a faster conduit in place of the socket that two processes already have. The socket
// stays: it carries the doorbell for a sleeping peer, and its end is the death notice. While
// nothing moves, reading and writing make no system call.
class Shortcut : public Conduit {
 public:
  // All that this side had to send over the socket has been sent. From now on this side sends only
  // doorbell bytes there, which carry no meaning. (Before this call, reading wakes no sleeping
  // peer.)
  virtual void take_socket() = 0;

  // Called before this process polls the socket for a doorbell, because it waits for something to
  // read, for room to write, or for both. False if either is there already.
  virtual bool may_sleep(bool reads, bool writes) = 0;
  // The process no longer sleeps.
  virtual void awake() = 0;
  // Takes the doorbell bytes from the socket, once the peer sends no frames over it any more. Also
  // notes the peer's end, which read and write report from then on. True if there was anything.
  virtual bool hear() = 0;
};

// How upgrades are made: one side makes one and offers it over the socket, and the other side
// attaches to it. If either step fails, the link stays on its socket.
class ShortcutMaker {
 public:
  static constexpr size_t max_offer = 256;  // bytes

  struct Made {
    std::unique_ptr<Shortcut> shortcut;
    std::vector<std::byte> offer;  // sent to the peer; opaque to the link
  };

  virtual ~ShortcutMaker() = default;
  virtual const char* name() const = 0;  // "shm"
  // socket: the link's; it stays open as long as the shortcut lives.
  virtual Result<Made> make(int socket) = 0;
  // offer: from a peer that has proved its identity; its content must not be trusted.
  virtual Result<std::unique_ptr<Shortcut>> attach(std::span<const std::byte> offer,
                                                   int socket) = 0;
};

}  // namespace sluice
