// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernel says of the bytes that go out over a TCP connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "transports/tcp/socket.h"

namespace sluice {

struct Flow {
  uint64_t acknowledged = 0;         // bytes so far
  size_t outstanding = 0;            // bytes that were written, and are not acknowledged
  std::chrono::microseconds shut{};  // the peer's window allowed no more for so long, so far
};

// Makes two system calls. False if it is no TCP socket, or the kernel is older than Linux 4.10.
bool ask_flow(const Socket& socket, Flow* flow);

// Bytes that all processes have sent so far over the interfaces of this process's network, loopback
// aside. Reads a file of the kernel's; 0 if that is not possible. (What passes a bridge or a bond
// is counted more than once.)
uint64_t sent_by_interfaces();
// The same, of what is in /proc/net/dev.
uint64_t sent_by_interfaces(FILE* table);

}  // namespace sluice
