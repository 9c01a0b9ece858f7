// SPDX-License-Identifier: BSD-3-Clause
//
// Sockets of this transport: non-blocking, without Nagle's delay, and with keepalive, so that the
// death of an idle peer's host is noticed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "transports/conduit.h"
#include "transports/descriptor.h"
#include "transports/tcp/address.h"
#include "transports/tcp/tcp.h"

namespace sluice {

using Socket = Descriptor;

// A connected socket as a conduit. Each write or read is one system call, of at most 64 runs.
// Result `closed`: the other side has ended the connection (a FIN has come). `failed` with an error
// of is_break: the connection was broken.
class SocketConduit final : public Conduit {
 public:
  explicit SocketConduit(const Socket& socket) : socket_(socket) {}
  // The socket is another connection's now.
  void renew() { broken_ = 0; }

  const char* name() const override { return "tcp"; }
  Moved write(std::span<const iovec> runs) override { return write(runs, 0); }
  Moved write_more(std::span<const iovec> runs) override;
  Moved read(std::span<const iovec> runs) override;
  std::string problem() const override;

 private:
  Moved write(std::span<const iovec> runs, int flags);
  Moved moved(ssize_t bytes, int first);  // what system_call gave

  const Socket& socket_;
  int broken_ = 0;  // errno: how it broke, which the kernel tells once. Then a write fails with
                    // EPIPE and a read finds the end
};

// Whether an errno value says that this process or its host lacks descriptors or memory. That may
// pass, and says nothing about the peer.
bool is_shortage(int error);

// Whether an errno value says that a connection has ended: it was reset, or timed out, or has no
// way to the other host any more. (EPIPE comes after a FIN, too.)
bool is_break(int error);

// Sets whether closing this socket resets its connection. A reset tells the other side that another
// connection will take its place. (Else it sends a FIN, unless bytes were not read: it has ended.)
void reset_when_closed(const Socket& socket, bool resets);
// Whether the other side has ended the connection, or it was broken: there may be bytes to read.
bool has_ended(const Socket& socket);
// Drops what has come, some of it where there is much. True once the other side has ended the
// connection, or it was broken.
bool drain(const Socket& socket);

// Whether the peer's host has acknowledged nothing of what was sent for so long, though it was sent
// again and again. Its kernel acknowledges bytes at once, even if the process does not read for
// hours. So if true, the host is dead or cut off, and the process is not merely late. False of a
// local socket.
bool is_unacknowledged(const Socket& connected, std::chrono::milliseconds limit);
// Whether its kernel has acknowledged all that was sent; true of a local socket.
bool has_acknowledged(const Socket& connected);

// Called before a close: makes the close reset the connection if retransmitted bytes are
// unacknowledged. Otherwise a FIN would follow these bytes; if they are lost, it would never
// arrive, and the peer would wait.
void reset_if_unacknowledged(const Socket& socket);

// How soon a connection fails whose host answers no probe while nothing is to be sent: within a
// limit, as long as it is being made, and within half a minute later.
void set_keepalive(const Socket& socket, std::chrono::milliseconds limit);

// How many bytes have come, of those that there is room for. 0: the other side has ended the
// connection. Else an errno value, negated: -EAGAIN if nothing has come.
ssize_t receive(const Socket& socket, void* to, size_t bytes, int flags = 0);
// Sends a few bytes over a new connection, which has room for them. 0, or an errno value: EAGAIN if
// not all were taken.
int send_all(const Socket& socket, std::span<const std::byte> bytes);

// Whether this process may open `count` more descriptors: 0, or the errno value why not. Makes
// system calls.
int try_descriptors(size_t count);
inline bool has_descriptors(size_t count) { return try_descriptors(count) == 0; }

// A stream socket; closed, with Descriptor::error, if none can be had.
Socket open_socket(int family);

// A socket with these options, to be bound or connected to that address. On loopback, which has no
// congestion, it uses reno unless the options name another: every kernel has reno, and it does not
// pace. Errors are system_error's.
Result<Socket> make_socket(const IpAddress& address, const TcpOptions& options);

// Binds a socket to an address of this host, from which it will connect. 0, or an errno value.
int connect_from(const Socket& socket, const IpAddress& source);

// Binds a socket to an address of this host, which a message calls so, and listens there. Errors
// are system_error's.
Status listen_at(const Socket& socket, const SocketAddress& at, const std::string& name);

// Listens on that address only, at the first free port of the options' range, or else at one that
// the kernel chooses. If none is to be had, Code::unavailable, with the range and the setting.
struct Listener {
  Socket socket;
  uint16_t port = 0;
};
Result<Listener> listen_on(const IpAddress& address, const TcpOptions& options);

// Whether no socket holds that port of an address of this host.
bool is_free(const IpAddress& address, uint16_t port);

// Whether a connection waits to be accepted.
bool is_waited_at(const Socket& listener);

// How many connections the kernel keeps until they are accepted, if it has kept as many, of which
// one has just been accepted. nullopt: fewer, or it is a local socket.
std::optional<unsigned> room_of_full_queue(const Socket& listener);

// Accepts the next waiting connection; a closed socket if there is none. Never blocks. system_error
// if one waits but can't be accepted: for lack of descriptors or memory, or because a filter of
// system calls forbids it.
Result<Socket> accept_from(const Socket& listener);

}  // namespace sluice
