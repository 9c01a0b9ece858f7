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

#include "src/base/system_call.h"

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

// 0, or an errno value.
int set_congestion(const Socket& socket, const std::string& name) {
  return -system_call([&] {
    return setsockopt(socket.fd(), IPPROTO_TCP, TCP_CONGESTION, name.c_str(),
                      static_cast<socklen_t>(name.size()));
  });
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

// Whether an errno value says that there is no socket at a number.
bool is_of_another(int error) { return error == EBADF || error == ENOTSOCK; }

msghdr message_of(std::span<const iovec> runs) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(runs.data());
  message.msg_iovlen = runs.size();
  return message;
}

}  // namespace

Conduit::Moved SocketConduit::write_more(std::span<const iovec> runs) {
  return write(runs, MSG_MORE);
}

Conduit::Moved SocketConduit::write(std::span<const iovec> runs, int flags) {
  flags |= MSG_NOSIGNAL | MSG_DONTWAIT;
  const msghdr message = message_of(runs);
  int first = 0;
  const ssize_t sent = system_call(
      [&] {
        return runs.size() == 1 ? send(socket_.fd(), runs[0].iov_base, runs[0].iov_len, flags)
                                : sendmsg(socket_.fd(), &message, flags);
      },
      &first);
  return moved(sent, first);
}

Conduit::Moved SocketConduit::read(std::span<const iovec> runs) {
  msghdr message = message_of(runs);
  int first = 0;
  const ssize_t got = system_call(
      [&] {
        return runs.size() == 1
                   ? recv(socket_.fd(), runs[0].iov_base, runs[0].iov_len, MSG_DONTWAIT)
                   : recvmsg(socket_.fd(), &message, MSG_DONTWAIT);
      },
      &first);
  return moved(got, first);
}

Conduit::Moved SocketConduit::moved(ssize_t bytes, int first) {
  using Result = Moved::Result;
  if (bytes > 0) return {Result::some, static_cast<size_t>(bytes)};
  if (bytes == -EAGAIN) return {Result::nothing};
  if ((is_break(first) && first != EPIPE) || is_of_another(first)) broken_ = first;
  const bool tells = bytes != 0 && bytes != -EPIPE;
  const int error = tells || broken_ == 0 ? static_cast<int>(-bytes) : broken_;
  return error == 0 ? Moved{Result::closed} : Moved{Result::failed, 0, error};
}

std::string SocketConduit::problem() const {
  if (!is_of_another(broken_)) return "";
  return "this process has closed its descriptor, or opened another file there";
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
    const ssize_t got = receive(socket, dropped.data(), dropped.size());
    if (got <= 0) return got != -EAGAIN;
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

bool has_acknowledged(const Socket& connected) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  const int failed = getsockopt(connected.fd(), IPPROTO_TCP, TCP_INFO, &info, &size);
  return failed != 0 || info.tcpi_unacked == 0;
}

void set_keepalive(const Socket& socket, std::chrono::milliseconds limit) {
  const int seconds = static_cast<int>(limit / std::chrono::seconds(1));
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, std::clamp(seconds / 3, 1, most_idle));
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::clamp(seconds / 6, 1, most_between));
}

ssize_t receive(const Socket& socket, void* to, size_t bytes, int flags) {
  int first = 0;
  const ssize_t got =
      system_call([&] { return recv(socket.fd(), to, bytes, MSG_DONTWAIT | flags); }, &first);
  return got == 0 && is_break(first) ? -first : got;
}

int send_all(const Socket& socket, std::span<const std::byte> bytes) {
  int first = 0;
  const ssize_t sent = system_call(
      [&] { return send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); },
      &first);
  if (sent == -EPIPE && is_break(first)) return first;
  if (sent < 0) return static_cast<int>(-sent);
  return sent == static_cast<ssize_t>(bytes.size()) ? 0 : EAGAIN;
}

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

Socket open_socket(int family) {
  constexpr int kind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  return Socket(system_call([&] { return socket(family, kind, 0); }));
}

Result<Socket> make_socket(const IpAddress& address, const TcpOptions& options) {
  Socket made = open_socket(address.family == 4 ? AF_INET : AF_INET6);
  if (!made) return system_error("no socket", made.error());
  set_manners(made);
  set_keepalive(made, options.connect_timeout);
  if (address.family == 6) set(made, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (options.socket_buffer > 0) set_buffers(made, options.socket_buffer);
  const int error = options.congestion.empty() ? 0 : set_congestion(made, options.congestion);
  if (error != 0) {
    return system_error("congestion control '" + options.congestion + "' cannot be had", error);
  }
  if (options.congestion.empty() && address.is_loopback()) set_congestion(made, "reno");
  return made;
}

int bind_to(const Socket& socket, const SocketAddress& at) {
  return -system_call(
      [&] { return bind(socket.fd(), reinterpret_cast<const sockaddr*>(&at.storage), at.size); });
}

int connect_from(const Socket& socket, const IpAddress& source) {
  set(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);  // the port is chosen for the connection
  return bind_to(socket, to_socket_address(source, 0));
}

Status listen_at(const Socket& socket, const SocketAddress& at, const std::string& name) {
  int error = bind_to(socket, at);
  if (error == 0) error = -system_call([&] { return listen(socket.fd(), backlog); });
  return error == 0 ? Status() : system_error("cannot listen on " + name, error);
}

namespace {

// At that port, or one that the kernel chooses.
Result<Listener> listen_at_port(const IpAddress& address, uint16_t chosen,
                                const TcpOptions& options) {
  auto made = make_socket(address, options);
  if (!made.ok()) return made.status();
  Listener listener{std::move(*made)};
  // Else what is left of an earlier process's connections would hold its port for a minute.
  if (chosen != 0) set(listener.socket, SOL_SOCKET, SO_REUSEADDR, 1);
  SocketAddress at = to_socket_address(address, chosen);
  if (Status status = listen_at(listener.socket, at, address.text()); !status.ok()) return status;
  const int fd = listener.socket.fd();
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&at.storage), &at.size) != 0) {
    return Status(Code::unavailable, "the kernel does not say at which port it listens");
  }
  in_port_t port;  // same offset in both families
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::memcpy(&port, reinterpret_cast<char*>(&at.storage) + offsetof(sockaddr_in, sin_port),
              sizeof(port));
  listener.port = ntohs(port);
  return listener;
}

}  // namespace

Result<Listener> listen_on(const IpAddress& address, const TcpOptions& options) {
  const auto [first, last] = options.ports;
  if (first == 0) return listen_at_port(address, 0, options);
  bool forbidden = false;
  for (uint32_t port = first; port <= last; ++port) {
    auto made = listen_at_port(address, static_cast<uint16_t>(port), options);
    const int error = made.status().error();
    if (made.ok() || (error != EADDRINUSE && error != EACCES)) return made;
    forbidden |= error == EACCES;
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
  return bind_to(*probe, to_socket_address(address, port)) == 0;
}

int try_descriptors(size_t count) {
  std::vector<Socket> held;
  for (size_t i = 0; i < count; ++i) {
    held.emplace_back(system_call([&] {
      return i == 0 ? eventfd(0, EFD_CLOEXEC) : fcntl(held[0].fd(), F_DUPFD_CLOEXEC, 0);
    }));
    if (!held.back()) return held.back().error();
  }
  return 0;
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

namespace {

// A filter of system calls may know accept alone. A negative number: an errno value, negated.
int accept_next(const Socket& listener) {
  const int fd = listener.fd();
  const int made =
      system_call([&] { return accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
  if (made != -ENOSYS && made != -EPERM && made != -EACCES) return made;
  const int plain = system_call([&] { return accept(fd, nullptr, nullptr); });
  if (plain < 0) return plain;
  fcntl(plain, F_SETFD, FD_CLOEXEC);
  fcntl(plain, F_SETFL, O_NONBLOCK);
  return plain;
}

}  // namespace

Result<Socket> accept_from(const Socket& listener) {
  constexpr const char* trouble = "cannot accept a connection";
  if (!is_waited_at(listener)) return Socket();
  // Accepting may give a number that Descriptor must move; if moving fails, the connection is lost.
  if (const int lack = try_descriptors(1); lack != 0) return system_error(trouble, lack);
  Socket accepted(accept_next(listener));
  if (accepted) {
    set_manners(accepted);  // keepalive is the listener's
    return accepted;
  }
  const int error = accepted.error();
  // (The kernel may report a shortage although none waits.)
  if (error == EAGAIN || is_break(error) || !is_waited_at(listener)) return Socket();
  return system_error(trouble, error);
}

}  // namespace sluice
