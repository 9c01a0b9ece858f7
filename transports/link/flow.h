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

// Makes two system calls. False if it is no TCP socket, or the kernel is older than Linux 4.10.
bool ask_flow(const Socket& socket, Flow* flow);
// Only the outstanding bytes; 0 if they are not known. Makes one system call.
size_t outstanding_on(const Socket& socket);

}  // namespace sluice
