// SPDX-License-Identifier: BSD-3-Clause
//
// What connecting needs to know of this process and its host. Nothing of it changes once the
// endpoint listens.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "transports/tcp/address.h"
#include "transports/tcp/greeting.h"
#include "transports/tcp/proofs.h"
#include "transports/tcp/socket.h"
#include "transports/tcp/tcp.h"
#include "transports/transport.h"

namespace sluice {

struct TcpContext {
  TcpOptions options;
  Key key{};  // that peers without a Prover say; with a filter there are none
  uint64_t host = 0;
  std::vector<Interface> all, chosen;

  // Reads that process's greeting over a connection on which this side has sent its invitation.
  // May throw std::bad_alloc.
  std::function<void(Socket, const Greeting& invitation)> await_greeting;
  // Closes a pending connection to free its descriptor. False if there is none.
  std::function<bool()> make_room;
  // Made in advance.
  const Status no_memory{Code::memory, "no memory for what a peer sent"};
  const Status no_memory_to_connect{Code::memory, "no memory for a connection"};

  // Whether settings treat connections within a host in another way than those between hosts. Then
  // a connection is within a host only if that is proved (local_socket.h). Otherwise two processes
  // with equal host_identity count as on one host, which only decides what is tried first.
  bool proves_host() const {
    return options.needs_upgrade || (options.filter && !options.filter->filters(true));
  }
  // Whether a greeting without a proof is for this process, and has its key.
  bool knows_key(const Greeting& greeting) const {
    return greeting.to == options.self && !greeting.proves && !options.filter &&
           are_equal(greeting.key, key);
  }
  // Whether this is that process's answer, without proofs, to this process's greeting.
  bool answers(const Greeting& greeting, const ProcessId& process) const {
    return greeting.from == process && knows_key(greeting);
  }
};

}  // namespace sluice
