// SPDX-License-Identifier: BSD-3-Clause
//
// The acceptor: the listening sockets, and the pending connections (guests), which have not greeted
// yet. A connection that begins with anything but a greeting with this process's key is closed
// without an answer. (Or a proof that its sender knows the key: see FilterMaker.)
//
// Any user of the host can connect and send nothing. So there are few pending connections, they
// leave some descriptors free for peers and for the program, and none stays longer than the connect
// deadline. If there is no room for another, the oldest is closed, but not in its first tenth of a
// second, in which a peer's greeting arrives. Until then new connections wait in the kernel.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "src/base/status.h"
#include "transports/tcp/shared.h"
#include "transports/tcp/socket.h"
#include "transports/tcp/wire.h"

namespace sluice {

class Reception {
 public:
  using Welcome = std::function<void(Socket, const Greeting&)>;

  explicit Reception(const TcpShared& shared) : shared_(shared) {}

  // Listens on every chosen interface for which the address has room.
  Status open();
  void close();
  // The entries of this process's address.
  const std::vector<AddressBlob::Entry>& entries() const { return entries_; }

  // Accepts new connections, and passes on those that have greeted. True if any were accepted. An
  // error if accepting fails although no connection is pending.
  Result<bool> admit(const Welcome& welcome);
  // Closes the oldest pending connection. False if there is none.
  bool drop_oldest();
  // Adds the sockets to poll.
  void add_to(std::vector<pollfd>& polls) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Guest {
    Socket socket;
    Clock::time_point since;  // when it was connected (accepted later)
    size_t got = 0;
    std::array<std::byte, Greeting::bytes> bytes;
  };
  enum class Verdict { wait, welcome, away };

  Result<bool> admit_from(const Listener& listener, const Welcome& welcome);
  bool make_room(const Welcome& welcome);
  std::vector<Guest>::iterator oldest();
  void hear_all(const Welcome& welcome);
  Verdict hear(Guest& guest) const;

  const TcpShared& shared_;
  std::vector<Listener> listeners_;
  std::vector<AddressBlob::Entry> entries_;
  std::vector<Guest> guests_;
  bool full_ = false;  // guests_ is not empty, and there is no room for another
};

}  // namespace sluice
