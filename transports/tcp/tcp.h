// SPDX-License-Identifier: BSD-3-Clause
//
// The TCP transport: one connection for each pair of processes that have something to say to each
// other, shared by all their teams. wire.h documents what goes over it.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "src/base/knobs.h"
#include "src/base/status.h"
#include "transports/conduit.h"
#include "transports/transport.h"

namespace sluice {

struct TcpOptions {
  // What settings say; the rest as below.
  static TcpOptions of(const Knobs& knobs);

  ProcessId self;

  // Which interfaces to listen on: names and networks ("eth0,10.0.0.0/8,fd00::/16"), or all but
  // those
  // ("^docker0,192.168.0.0/16"). Empty: all that are up, loopback too, which serves processes of
  // the same host.
  std::string interfaces;
  int family = 0;  // 4 or 6: only that; 0: both

  // Of each channel, in bytes; equal on both sides, or the link fails with both values. Messages
  // that do not fit in it at all take a round trip more.
  size_t window = size_t{4} << 20;
  size_t max_message = size_t{1} << 20;

  size_t socket_buffer = 0;  // each way, 4 KiB or more; 0 leaves it to the kernel, which adapts it
  // Congestion control; empty leaves the system's, but on loopback, where nothing need be paced.
  std::string congestion;
  // For a connection to come about; not for a peer to enter a call, which may take it any time.
  std::chrono::milliseconds connect_timeout{20000};

  // Links between processes of one host leave their sockets for these, where both sides can.
  // nullptr: none do.
  std::shared_ptr<ShortcutMaker> shortcuts{};
};

// Listens when it returns. Errors: an interface list that makes no sense (invalid) or matches
// nothing (unavailable), a congestion control that the kernel lacks, no descriptors left.
Result<std::unique_ptr<Endpoint>> make_tcp_endpoint(const TcpOptions& options);

}  // namespace sluice
