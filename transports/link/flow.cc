// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/flow.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cinttypes>
#include <cstddef>
#include <memory>
#include <string_view>

namespace sluice {
namespace {

// What Linux tells of a connection since 4.10, of which the C library declares the beginning alone.
struct LongTcpInfo {
  std::byte known[120];
  uint64_t bytes_acked, bytes_received;
  uint32_t segs_out, segs_in, notsent_bytes, min_rtt, data_segs_in, data_segs_out;
  uint64_t delivery_rate, busy_time, rwnd_limited;  // bytes a second, microseconds
};
static_assert(offsetof(LongTcpInfo, rwnd_limited) == 176);

// 0 if they are not known.
size_t outstanding_on(const Socket& socket) {
  int left = 0;
  if (ioctl(socket.fd(), SIOCOUTQ, &left) != 0 || left < 0) return 0;
  return static_cast<size_t>(left);
}

}  // namespace

bool ask_flow(const Socket& socket, Flow* flow) {
  LongTcpInfo info{};
  socklen_t size = sizeof(info);
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  if (size < sizeof(info)) return false;
  flow->acknowledged = info.bytes_acked;
  flow->shut = std::chrono::microseconds(info.rwnd_limited);
  flow->outstanding = outstanding_on(socket);
  return true;
}

// After two lines of titles, a line for each: its name and a colon, eight numbers of what it has
// received, and eight of what it has sent, bytes first.
uint64_t sent_by_interfaces(FILE* table) {
  uint64_t sum = 0;
  std::array<char, 512> line, name;
  while (fgets(line.data(), static_cast<int>(line.size()), table) != nullptr) {
    uint64_t sent = 0;
    const char* const format = " %511[^:]:%*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64;
    if (sscanf(line.data(), format, name.data(), &sent) != 2) continue;
    if (std::string_view(name.data()) != "lo") sum += sent;
  }
  return sum;
}

uint64_t sent_by_interfaces() {
  const std::unique_ptr<FILE, int (*)(FILE*)> table(fopen("/proc/self/net/dev", "re"), fclose);
  return table ? sent_by_interfaces(table.get()) : 0;
}

}  // namespace sluice
