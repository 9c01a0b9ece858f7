// SPDX-License-Identifier: BSD-3-Clause
//
// Where connections come in: the listening sockets, and the connections that have not said who they
// are. Who does not begin with a greeting that knows this process's key is sent away without an
// answer; there are never more than so many of them, nor longer than the connect deadline.
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
  // connections can't be taken.
  Result<bool> admit(const Welcome& welcome);
  // Sockets on which there may be news.
  void add_to(std::vector<pollfd>& polls) const;
  bool has_guests() const { return !guests_.empty(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t max_guests = 128;

  struct Guest {
    Socket socket;
    Clock::time_point until;
    size_t got = 0;
    std::array<std::byte, Greeting::bytes> bytes;
  };
  enum class Verdict { wait, welcome, away };

  void hear_all(const Welcome& welcome);
  Verdict hear(Guest& guest) const;
  bool knows_us(const Greeting& greeting) const;

  const TcpShared& shared_;
  std::vector<Listener> listeners_;
  std::vector<AddressBlob::Entry> entries_;
  std::vector<Guest> guests_;  // longest here first
};

}  // namespace sluice
