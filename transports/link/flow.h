// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernel says of the bytes that go out over a TCP connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "transports/tcp/socket.h"

namespace sluice {

struct Flow {
  uint64_t acknowledged = 0;         // bytes so far
  size_t outstanding = 0;            // bytes that were written, and are not acknowledged
  std::chrono::microseconds shut{};  // the peer's window allowed no more for so long, so far
};

// How many bytes of those that were sent over a connection the peer's kernel has acknowledged.
class Acknowledged {
 public:
  // Makes a system call, unless nothing was sent since all had been acknowledged.
  uint64_t of(uint64_t sent, const Socket& socket);

 private:
  uint64_t drained_at_ = 0;
};

// Makes two system calls. False if it is no TCP socket, or the kernel is older than Linux 4.10.
bool ask_flow(const Socket& socket, Flow* flow);

}  // namespace sluice
