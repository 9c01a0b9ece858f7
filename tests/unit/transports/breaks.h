// SPDX-License-Identifier: BSD-3-Clause
//
// Breaks connections of endpoints in this process, as networks do.
#pragma once

#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/unit/transports/tcp_rig.h"

namespace sluice {

enum class Break {
  reset,    // this side's socket is as if its host had sent a RST; what it has not read is lost
  forget,   // this side's socket is none any more, and the peer notices nothing
  shutdown  // no break: this side ends the connection, as a process that ends or gives it up
};
constexpr Break all_breaks[] = {Break::reset, Break::forget};

// One end of a connected socket of TCP; of no family: it is none.
inline SocketAddress end_address(int fd, bool peers) {
  SocketAddress end;
  end.size = sizeof(end.storage);
  auto* const at = reinterpret_cast<sockaddr*>(&end.storage);
  const int failed = peers ? getpeername(fd, at, &end.size) : getsockname(fd, at, &end.size);
  return failed != 0 || (at->sa_family != AF_INET && at->sa_family != AF_INET6) ? SocketAddress()
                                                                                : end;
}

// Its port; 0: it is none.
inline uint16_t port_of(int fd, bool peers) {
  const SocketAddress end = end_address(fd, peers);
  return ntohs(reinterpret_cast<const sockaddr_in6&>(end.storage).sin6_port);  // IPv4: same offset
}

// Whether that end of a connected socket is one at which the endpoint listens. (Another process, or
// another endpoint of this one, may have the same port of another address.)
inline bool listens_at(Endpoint& endpoint, int fd, bool peers) {
  const SocketAddress end = end_address(fd, peers);
  const uint16_t port = port_of(fd, peers);
  return port != 0 && std::ranges::any_of(address_of(endpoint).entries, [&](const auto& each) {
           return each.port == port && each.address == to_ip_address(end);
         });
}

// The rank's end of the connection of ranks 0 and 1; -1: there is none.
inline int end_of(Ranks& ranks, size_t rank) {
  for (const int fd : descriptors()) {
    if (port_of(fd, true) == 0) continue;
    if (listens_at(ranks.at(rank), fd, false) || listens_at(ranks.at(1 - rank), fd, true)) {
      return fd;
    }
  }
  return -1;
}

// For as long as it lives, nothing reaches that socket, as if its network was down. It begins when
// nothing is on its way, not even an acknowledgement.
class Outage {
 public:
  explicit Outage(int fd) : fd_(fd) {
    int left = 1;
    while (ioctl(fd_, SIOCOUTQ, &left) == 0 && left > 0) usleep(1000);
    sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
    const sock_fprog all{1, &drop};
    EXPECT_EQ(setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all)), 0);
    const int second = 1;
    EXPECT_EQ(setsockopt(fd_, IPPROTO_TCP, TCP_KEEPIDLE, &second, sizeof(second)), 0);
  }
  ~Outage() {
    const int none = 0;
    EXPECT_EQ(setsockopt(fd_, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)), 0);
  }
  Outage(const Outage&) = delete;
  Outage& operator=(const Outage&) = delete;

  // The kernel does not give the connection up for the next two minutes.
  void keep_probing() const {
    const int most = 127;
    EXPECT_EQ(setsockopt(fd_, IPPROTO_TCP, TCP_KEEPCNT, &most, sizeof(most)), 0);
  }
  // Until the kernel has probed the idle connection, which takes a second. False if it does not.
  bool await_probe() const {
    return await([](const tcp_info& info) { return info.tcpi_probes > 0; });
  }
  // Until the kernel has sent three times again what has no acknowledgement, which takes 1.4 s.
  bool await_retransmissions() const {
    return await([](const tcp_info& info) { return info.tcpi_retransmits >= 3; });
  }
  tcp_info look() const {
    tcp_info info{};
    socklen_t size = sizeof(info);
    EXPECT_EQ(getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info;
  }

 private:
  bool await(auto holds) const {
    for (int i = 0; i < 1000 && !holds(look()); ++i) usleep(10'000);
    return holds(look());
  }

  const int fd_;
};

// The rank's listeners.
inline std::vector<int> listeners_of(Ranks& ranks, size_t rank) {
  std::vector<int> found;
  for (const int fd : descriptors()) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    if (listens_at(ranks.at(rank), fd, false)) found.push_back(fd);
  }
  return found;
}

// A firewall lets connections to them through, and drops all bytes of those. (What the kernel asks
// the program about begins with the header of TCP, whose length is in the thirteenth byte.)
inline void swallow(const std::vector<int>& listeners) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
      BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 2), BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),  BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0),           BPF_STMT(BPF_RET | BPF_K, 0xffff),
  };
  const sock_fprog filter{std::size(program), program};
  for (const int fd : listeners) {
    EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)), 0);
  }
}

// Nothing reaches them any more, as if the rank's host was down.
inline void cut_off(Ranks& ranks, size_t rank) {
  sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog all{1, &drop};
  for (const int fd : listeners_of(ranks, rank)) {
    EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all)), 0);
  }
}

class Breaker {
 public:
  // False if there is no connection.
  bool hit(Ranks& ranks, size_t rank, Break how) {
    const int fd = end_of(ranks, rank);
    if (fd < 0) return false;
    switch (how) {
      case Break::shutdown:
        ::shutdown(fd, SHUT_WR);
        break;
      case Break::reset: {
        sockaddr none{};
        none.sa_family = AF_UNSPEC;
        EXPECT_EQ(connect(fd, &none, sizeof(none)), 0);
        break;
      }
      case Break::forget: {
        kept_.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, 0));
        const Socket other(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
        EXPECT_EQ(dup2(other.fd(), fd), fd);
        break;
      }
    }
    return true;
  }

  // The hosts of sockets that were forgotten answer with a RST from now on.
  void reset_forgotten() {
    for (const Socket& each : kept_) reset_when_closed(each, true);
    kept_.clear();
  }

 private:
  std::vector<Socket> kept_;  // so that the peers' ends look well
};

}  // namespace sluice
