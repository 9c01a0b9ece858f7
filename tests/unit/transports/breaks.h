// SPDX-License-Identifier: BSD-3-Clause
//
// Breaks connections of endpoints in this process, as networks do.
#pragma once

#include <netinet/in.h>
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

// A port of a connected socket of TCP; 0: it is none.
inline uint16_t port_of(int fd, bool peers) {
  sockaddr_in6 address{};
  socklen_t size = sizeof(address);
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  if ((peers ? getpeername(fd, at, &size) : getsockname(fd, at, &size)) != 0) return 0;
  if (at->sa_family != AF_INET && at->sa_family != AF_INET6) return 0;
  return ntohs(address.sin6_port);  // same offset in both families
}

// The rank's end of the connection of ranks 0 and 1; -1: there is none.
inline int end_of(Ranks& ranks, size_t rank) {
  const auto listens_at = [](Endpoint& endpoint, uint16_t port) {
    const auto entries = address_of(endpoint).entries;
    return std::ranges::any_of(entries, [&](const auto& each) { return each.port == port; });
  };
  for (const int fd : descriptors()) {
    const uint16_t peers = port_of(fd, true), own = port_of(fd, false);
    if (peers == 0) continue;
    if (listens_at(ranks.at(rank), own) || listens_at(ranks.at(1 - rank), peers)) return fd;
  }
  return -1;
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
  void reset_forgotten() { kept_.clear(); }

 private:
  std::vector<Socket> kept_;  // so that the peers' ends look well
};

}  // namespace sluice
