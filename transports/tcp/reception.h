// SPDX-License-Identifier: BSD-3-Clause
//
// Where connections come in: the listening sockets, and the guests: connections that have not
// greeted yet. Those that begin with anything but a greeting with this process's key are closed
// without an answer.
//
// Any user of the host can connect and say nothing. So guests are few, they leave some descriptors
// free for peers and for the program, and none stays longer than the connect deadline. Where there
// is no room for another, the oldest is closed, but not within its first tenth of a second, in
// which a peer's greeting comes; until then new connections wait in the kernel.
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

  // On every interface chosen that the address has room for.
  Status open();
  void close();
  // What peers are told.
  const std::vector<AddressBlob::Entry>& entries() const { return entries_; }

  // Takes what has come, and hands on connections of peers. True if there was any. An error if
  // connections can't be taken though there are no guests.
  Result<bool> admit(const Welcome& welcome);
  // Closes the oldest guest. False if there is none.
  bool drop_oldest();
  // Sockets on which there may be news.
  void add_to(std::vector<pollfd>& polls) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Guest {
    Socket socket;
    Clock::time_point since;  // it was connected, before it was accepted
    size_t got = 0;
    std::array<std::byte, Greeting::bytes> bytes;
  };
  enum class Verdict { wait, welcome, away };

  Result<bool> admit_from(const Listener& listener, const Welcome& welcome);
  bool make_room(const Welcome& welcome);
  std::vector<Guest>::iterator oldest();
  void hear_all(const Welcome& welcome);
  Verdict hear(Guest& guest) const;
  bool knows_us(const Greeting& greeting) const;

  const TcpShared& shared_;
  std::vector<Listener> listeners_;
  std::vector<AddressBlob::Entry> entries_;
  std::vector<Guest> guests_;
  bool full_ = false;  // there are guests, and no room for another
};

}  // namespace sluice
