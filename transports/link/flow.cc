// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/flow.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

namespace sluice {
namespace {

// 0 if they are not known.
size_t outstanding_on(const Socket& socket) {
  int left = 0;
  if (ioctl(socket.fd(), SIOCOUTQ, &left) != 0 || left < 0) return 0;
  return static_cast<size_t>(left);
}

}  // namespace

bool ask_flow(const Socket& socket, Flow* flow) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  constexpr size_t needed = offsetof(tcp_info, tcpi_rwnd_limited) + sizeof(info.tcpi_rwnd_limited);
  if (size < needed) return false;
  flow->acknowledged = info.tcpi_bytes_acked;
  flow->shut = std::chrono::microseconds(info.tcpi_rwnd_limited);
  flow->outstanding = outstanding_on(socket);
  return true;
}

uint64_t Acknowledged::of(uint64_t sent, const Socket& socket) {
  if (sent == drained_at_) return sent;
  const size_t left = outstanding_on(socket);
  if (left == 0) drained_at_ = sent;
  return sent - std::min<uint64_t>(sent, left);
}

}  // namespace sluice
