// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <vector>

namespace sluice {
namespace {

// An idle connection is probed after a third of the time, then every sixth, and given up after 4
// probes without an answer.
constexpr int keepalive_probes = 4, most_idle = 10, most_between = 5;
constexpr unsigned least_tries = 3;  // to send bytes, before the other host may be dead
constexpr int backlog = 65535;       // the kernel limits it to net.core.somaxconn

bool set(const Socket& socket, int level, int option, int value) {
  return setsockopt(socket.fd(), level, option, &value, sizeof(value)) == 0;
}

bool set_congestion(const Socket& socket, const std::string& name) {
  return setsockopt(socket.fd(), IPPROTO_TCP, TCP_CONGESTION, name.c_str(),
                    static_cast<socklen_t>(name.size())) == 0;
}

// TCP_USER_TIMEOUT is not set: it would also end connections to live peers that merely do not read
// for a while (tcp(7): "buffered data may remain untransmitted"). See Link::look_after.
void set_manners(const Socket& socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, keepalive_probes);
}

// The kernel advertises a window of up to 64 KiB in whole segments. If less than a segment fits,
// the sender sends nothing until its kernel probes, 5 times a second (RFC 9293, 3.8.6.2: silly
// window avoidance). Over loopback a segment is half such a window, so with a little less room only
// one is advertised. A maximum segment size of a quarter of the window always leaves room for some.
void set_buffers(const Socket& socket, size_t bytes) {
  constexpr size_t largest_told_in_segments = 65535, segments = 4;
  set(socket, SOL_SOCKET, SO_SNDBUF, static_cast<int>(bytes));
  set(socket, SOL_SOCKET, SO_RCVBUF, static_cast<int>(bytes));
  if (bytes > largest_told_in_segments) return;
  set(socket, IPPROTO_TCP, TCP_MAXSEG, static_cast<int>(bytes / segments));
}

msghdr message_of(std::span<const iovec> runs) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(runs.data());
  message.msg_iovlen = runs.size();
  return message;
}

Conduit::Moved moved(ssize_t bytes) {
  using Result = Conduit::Moved::Result;
  if (bytes > 0) return {Result::some, static_cast<size_t>(bytes)};
  if (bytes == 0) return {Result::closed};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {Result::nothing};
  return {Result::failed, 0, errno};
}

}  // namespace

Conduit::Moved SocketConduit::write_more(std::span<const iovec> runs) {
  return write(runs, MSG_MORE);
}

Conduit::Moved SocketConduit::write(std::span<const iovec> runs, int flags) {
  flags |= MSG_NOSIGNAL | MSG_DONTWAIT;
  const msghdr message = message_of(runs);
  ssize_t sent;
  do {
    sent = runs.size() == 1 ? send(socket_.fd(), runs[0].iov_base, runs[0].iov_len, flags)
                            : sendmsg(socket_.fd(), &message, flags);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && is_break(errno) && errno != EPIPE) broken_ = errno;
  return moved(sent);
}

Conduit::Moved SocketConduit::read(std::span<const iovec> runs) {
  msghdr message = message_of(runs);
  ssize_t got;
  do {
    got = runs.size() == 1 ? recv(socket_.fd(), runs[0].iov_base, runs[0].iov_len, MSG_DONTWAIT)
                           : recvmsg(socket_.fd(), &message, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got == 0 && broken_ != 0) return {Moved::Result::failed, 0, broken_};
  return moved(got);
}

bool is_break(int error) {
  constexpr int breaks[] = {EPIPE,        ECONNRESET,  ETIMEDOUT, ECONNABORTED, ENOTCONN,
                            EHOSTUNREACH, ENETUNREACH, ENETDOWN,  EHOSTDOWN};
  return std::ranges::find(breaks, error) != std::end(breaks);
}

void reset_when_closed(const Socket& socket, bool resets) {
  const linger how{resets, 0};
  setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &how, sizeof(how));
}

void reset_if_unacknowledged(const Socket& socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (!socket || getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  if (info.tcpi_state == TCP_SYN_SENT || info.tcpi_unacked == 0) return;
  if (info.tcpi_retransmits + info.tcpi_probes > 0) reset_when_closed(socket, true);
}

bool has_ended(const Socket& socket) {
  pollfd end{socket.fd(), POLLRDHUP, 0};
  return poll(&end, 1, 0) > 0;
}

bool drain(const Socket& socket) {
  constexpr int most_reads = 64;
  std::array<std::byte, 16384> dropped;
  for (int i = 0; i < most_reads; ++i) {
    const ssize_t got = recv(socket.fd(), dropped.data(), dropped.size(), MSG_DONTWAIT);
    const bool waits = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (got <= 0) return !waits;
  }
  return false;
}

bool is_unacknowledged(const Socket& connected, std::chrono::milliseconds limit) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(connected.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_unacked > 0 && info.tcpi_retransmits + info.tcpi_probes >= least_tries &&
         std::chrono::milliseconds(info.tcpi_last_ack_recv) >= limit;
}

void set_keepalive(const Socket& socket, std::chrono::milliseconds limit) {
  const int seconds = static_cast<int>(limit / std::chrono::seconds(1));
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, std::clamp(seconds / 3, 1, most_idle));
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::clamp(seconds / 6, 1, most_between));
}

bool send_all(const Socket& socket, std::span<const std::byte> bytes) {
  const ssize_t sent = send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0 && sent < static_cast<ssize_t>(bytes.size())) errno = EAGAIN;
  return sent == static_cast<ssize_t>(bytes.size());
}

std::string error_text(int error) {
  char buffer[128] = "";
  return strerror_r(error, buffer, sizeof(buffer));
}

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

Status system_error(const std::string& what) {
  const int error = errno;
  Status made(Code::unavailable, what + ": " + error_text(error));
  errno = error;
  return made;
}

Result<Socket> make_socket(const IpAddress& address, const TcpOptions& options) {
  Socket made(::socket(address.family == 4 ? AF_INET : AF_INET6,
                       SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) return system_error("no socket");
  set_manners(made);
  set_keepalive(made, options.connect_timeout);
  if (address.family == 6) set(made, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (options.socket_buffer > 0) set_buffers(made, options.socket_buffer);
  if (!options.congestion.empty() && !set_congestion(made, options.congestion)) {
    return system_error("congestion control '" + options.congestion + "' cannot be had");
  }
  if (options.congestion.empty() && address.is_loopback()) set_congestion(made, "reno");
  return made;
}

bool connect_from(const Socket& socket, const IpAddress& source) {
  set(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);  // the port is chosen for the connection
  const SocketAddress at = to_socket_address(source, 0);
  return bind(socket.fd(), reinterpret_cast<const sockaddr*>(&at.storage), at.size) == 0;
}

// At that port, or one that the kernel chooses.
Result<Listener> listen_at(const IpAddress& address, uint16_t chosen, const TcpOptions& options) {
  auto made = make_socket(address, options);
  if (!made.ok()) return made.status();
  Listener listener{std::move(*made)};
  // Else what is left of an earlier process's connections would hold its port for a minute.
  if (chosen != 0) set(listener.socket, SOL_SOCKET, SO_REUSEADDR, 1);
  SocketAddress at = to_socket_address(address, chosen);
  const int fd = listener.socket.fd();
  if (bind(fd, reinterpret_cast<sockaddr*>(&at.storage), at.size) != 0 ||
      listen(fd, backlog) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&at.storage), &at.size) != 0) {
    return system_error("cannot listen on " + address.text());
  }
  in_port_t port;  // same offset in both families
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::memcpy(&port, reinterpret_cast<char*>(&at.storage) + offsetof(sockaddr_in, sin_port),
              sizeof(port));
  listener.port = ntohs(port);
  return listener;
}

Result<Listener> listen_on(const IpAddress& address, const TcpOptions& options) {
  const auto [first, last] = options.ports;
  if (first == 0) return listen_at(address, 0, options);
  bool forbidden = false;
  for (uint32_t port = first; port <= last; ++port) {
    auto made = listen_at(address, static_cast<uint16_t>(port), options);
    if (made.ok() || (errno != EADDRINUSE && errno != EACCES)) return made;
    forbidden |= errno == EACCES;
  }
  const std::string range =
      std::to_string(first) + (last == first ? "" : "-" + std::to_string(last));
  const std::string why =
      forbidden ? "; this user may not listen at the lowest (net.ipv4.ip_unprivileged_port_start)"
                : "";
  return Status(Code::unavailable,
                "SLUICE_TCP_PORTS=" + range + ": no port is free on " + address.text() + why);
}

bool is_free(const IpAddress& address, uint16_t port) {
  const auto probe = make_socket(address, {});
  if (!probe.ok()) return false;
  const SocketAddress at = to_socket_address(address, port);
  return bind(probe->fd(), reinterpret_cast<const sockaddr*>(&at.storage), at.size) == 0;
}

bool has_descriptors(size_t count) {
  std::vector<Socket> held;
  for (size_t i = 0; i < count; ++i) {
    held.emplace_back(i == 0 ? eventfd(0, EFD_CLOEXEC) : fcntl(held[0].fd(), F_DUPFD_CLOEXEC, 0));
    if (!held.back()) return false;
  }
  return true;
}

bool is_waited_at(const Socket& listener) {
  pollfd waiting{listener.fd(), POLLIN, 0};
  return poll(&waiting, 1, 0) > 0;
}

std::optional<unsigned> room_of_full_queue(const Socket& listener) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(listener.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  const unsigned waiting = info.tcpi_unacked, most = info.tcpi_sacked;  // (of one that listens)
  return waiting >= most ? std::optional(most + 1) : std::nullopt;
}

Result<Socket> accept_from(const Socket& listener) {
  constexpr const char* trouble = "cannot accept a connection: ";
  Socket accepted;
  if (!is_waited_at(listener)) return accepted;
  // Accepting may give a number that Descriptor must move; if moving fails, the connection is lost.
  if (!has_descriptors(1)) return Status(Code::unavailable, trouble + error_text(errno));
  do {
    accepted = Socket(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  } while (!accepted && (errno == EINTR || errno == ECONNABORTED));
  if (!accepted && is_shortage(errno)) {
    const int error = errno;  // the kernel may report it although none waits
    if (!is_waited_at(listener)) return accepted;
    return Status(Code::unavailable, trouble + error_text(error));
  }
  if (accepted) set_manners(accepted);  // keepalive is the listener's
  return accepted;
}

}  // namespace sluice
