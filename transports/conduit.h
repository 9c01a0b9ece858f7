// SPDX-License-Identifier: BSD-3-Clause
//
// How the bytes of one connection move between two processes, in order, each way: what lies under a
// link's frames. A link knows conduits only: a socket, a ring in shared memory that takes its
// place, a filter over either. Nothing here blocks. A link's own lock guards its conduits.
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

  // Takes what there is room for, from the runs in order; nothing: there is no room now. What was
  // taken arrives even if this process ends right now. Failed with EPIPE, ECONNRESET or ETIMEDOUT:
  // the peer is gone, but what it sent before may still be read.
  virtual Moved write(std::span<const iovec> runs) = 0;
  // Fills the runs in order with what has come. Closed: all that ever came has been read.
  virtual Moved read(std::span<const iovec> runs) = 0;
};

// A quicker way than the socket that two processes have already. The socket stays: it wakes who
// sleeps over it, and its end is the death notice. While nothing moves, reading and writing make no
// system call.
class Shortcut : public Conduit {
 public:
  // All that this side had to send over the socket has gone: what it sends there from now on are
  // bells, bytes that mean nothing. (Before that it wakes nobody.)
  virtual void take_socket() = 0;

  // This process is about to poll the socket for a bell, because it waits for something to read, or
  // for room to write, or both. False if it is there already.
  virtual bool may_sleep(bool reads, bool writes) = 0;
  // It does not sleep any more.
  virtual void awake() = 0;
  // The peer sends nothing but bells over the socket: takes them, and notes the peer's end, which
  // read and write tell of from then on. True if anything was there.
  virtual bool hear() = 0;
};

// How shortcuts come about: one side makes one and offers it over the socket, the other tries to
// take up the offer. Both may fail, and the link stays on its socket.
class ShortcutMaker {
 public:
  static constexpr size_t max_offer = 256;  // bytes

  struct Made {
    std::unique_ptr<Shortcut> shortcut;
    std::vector<std::byte> offer;  // for the peer, opaque
  };

  virtual ~ShortcutMaker() = default;
  virtual const char* name() const = 0;  // "shm"
  // The socket is the link's, open for as long as the shortcut lives.
  virtual Result<Made> make(int socket) = 0;
  // The offer is a peer's that has shown who it is, and not to be trusted otherwise.
  virtual Result<std::unique_ptr<Shortcut>> attach(std::span<const std::byte> offer,
                                                   int socket) = 0;
};

}  // namespace sluice
