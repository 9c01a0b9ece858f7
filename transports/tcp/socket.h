// SPDX-License-Identifier: BSD-3-Clause
//
// Sockets as this transport uses them: non-blocking, without Nagle's delay, with keepalive, so that
// the death of an idle peer's host shows within half a minute.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/status.h"
#include "transports/conduit.h"
#include "transports/descriptor.h"
#include "transports/tcp/address.h"
#include "transports/tcp/tcp.h"

namespace sluice {

using Socket = Descriptor;

// A connected socket's bytes. One system call a write or read, of 64 runs at most.
class SocketConduit final : public Conduit {
 public:
  explicit SocketConduit(const Socket& socket) : socket_(socket) {}

  Moved write(std::span<const iovec> runs) override;
  Moved read(std::span<const iovec> runs) override;

 private:
  const Socket& socket_;
};

// "Connection refused"
std::string error_text(int error);

// Whether this process may open so many descriptors more.
bool has_descriptors(size_t count);

// A socket of the options' kind, to be bound or connected to that address. Over loopback, where
// there is nothing to congest, it uses the one congestion control that every kernel has and that
// doesn't pace, unless the options name another.
Result<Socket> make_socket(const IpAddress& address, const TcpOptions& options);

// Listens on that address alone, at a port of the kernel's choice.
struct Listener {
  Socket socket;
  uint16_t port = 0;
};
Result<Listener> listen_on(const IpAddress& address, const TcpOptions& options);

// Whether nobody holds that port of an address of this host.
bool is_free(const IpAddress& address, uint16_t port);

// Whether a connection waits to be accepted.
bool is_waited_at(const Socket& listener);

// The next connection that waits there; none: a closed socket. Never blocks. An error if there is
// one but it can't be had, for lack of descriptors or memory.
Result<Socket> accept_from(const Socket& listener);

}  // namespace sluice
