// SPDX-License-Identifier: BSD-3-Clause
//
// The TCP transport: one connection for each pair of processes that communicate, shared by all
// their teams, and beside it, if asked for, rails for large messages (transports/link/rails.h).
// greeting.h and transports/link/frame.h document the bytes on it.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/base/knobs.h"
#include "src/base/status.h"
#include "transports/conduit.h"
#include "transports/transport.h"

namespace sluice {

struct TcpOptions {
  // Options from the user's settings; the others keep the defaults below.
  static TcpOptions of(const Knobs& knobs);

  ProcessId self;
  std::string host{};  // the name of this host, as Peer::host; empty: not known

  // Which interfaces to listen on: names and networks ("eth0,10.0.0.0/8,fd00::/16"), or all except
  // those ("^docker0,192.168.0.0/16"). Empty: all that are up, including loopback for processes of
  // the same host.
  std::string interfaces;
  int family = 0;  // 4 or 6: only that one; 0: both

  // The ports to listen at; zeros: any, as the kernel chooses.
  PortRange ports{};

  // Bytes of each channel's window; if the two sides differ, the link fails and names both values.
  // Messages longer than the window take one more round trip.
  size_t window = size_t{4} << 20;
  size_t max_message = size_t{1} << 20;
  // A message of so many bytes is got from the sender's memory, where a link can
  // (transports/link/loans.h). The two sides may differ.
  size_t get_least = size_t{1} << 40;

  // That a large message is spread over: 1, the one connection; else so many rails.
  unsigned streams = 1;
  // Between hosts each sender tries whether they, or the one connection, are faster
  // (transports/link/spread_probe.h). Within a host there are none.
  bool tries_streams = false;

  size_t socket_buffer = 0;  // each way, 4 KiB or more; 0: adapted by the kernel
  // Congestion control. Empty: the system's default, except on loopback, which needs no pacing.
  std::string congestion;
  // For making a connection. A peer may take any time to enter a call.
  std::chrono::milliseconds connect_timeout{20000};
  // How long the answering side lets the other connect before it dials, too (meeting.h).
  std::chrono::milliseconds dial_after{1000};
  // A peer's host that acknowledges nothing for so long, while an operation waits for it, is taken
  // for dead. 0: it never is.
  std::chrono::milliseconds peer_timeout{60000};
  // How long closing waits at most until the peers' kernels have taken what was sent.
  std::chrono::milliseconds linger{10000};

  // What links are upgraded with, where both sides can: the first of these that serves.
  std::vector<std::shared_ptr<UpgradeMaker>> upgrades{};
  // Between hosts, a link that cannot be upgraded fails.
  bool needs_upgrade = false;
  // If set, connections to processes that have one too begin with proofs (greeting.h), and with the
  // key in clear to others.
  std::shared_ptr<Prover> prover{};
  // If set, what filters connections; needs a prover. All processes must have the same.
  std::shared_ptr<FilterMaker> filter{};
};

// The endpoint listens when this returns. Errors: an interface list that is invalid (invalid) or
// matches nothing (unavailable), no free port in the range
// (unavailable), a congestion control that the kernel lacks, no descriptors left.
Result<std::unique_ptr<Endpoint>> make_tcp_endpoint(const TcpOptions& options);

}  // namespace sluice
