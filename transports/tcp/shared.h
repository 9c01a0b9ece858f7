// SPDX-License-Identifier: BSD-3-Clause
//
// What all links of an endpoint share. The endpoint's lock guards it, and the links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "transports/tcp/address.h"
#include "transports/tcp/peer_keys.h"
#include "transports/tcp/proofs.h"
#include "transports/tcp/tcp.h"
#include "transports/tcp/wire.h"
#include "transports/transport.h"

namespace sluice {

class Link;

struct TcpShared {
  TcpOptions options;
  Key key{};  // that peers without a Prover say; with a filter there are none
  PeerKeys met;
  uint64_t host = 0;
  std::vector<Interface> all, chosen;

  std::vector<Link*> pending;  // links with something to do, each once
  // Closes a pending connection to free its descriptor. False if there is none.
  std::function<bool()> make_room;
  // Made in advance.
  const Status no_memory{Code::memory, "no memory for what a peer sent"};
  const Status no_memory_to_connect{Code::memory, "no memory for a connection"};
  bool unfinished = false;          // a link stopped although it could have gone on
  uint64_t ended = 0;               // links that have ended so far
  uint64_t given_up = 0;            // of these, before the peer connected
  std::set<std::string> reasons{};  // why links stayed on their sockets, as far as logged

  // The operation being posted. If it completes, the post's return value reports that, not the
  // queue.
  Operation* posting = nullptr;
  uint64_t finished = 0;  // operations completed so far
  uint64_t heard = 0;     // of these, when this turn began: of later ones no caller has heard yet

  // Whether settings treat connections within a host in another way than those between hosts. Then
  // a connection is within a host only if that is proved (local_socket.h). Else two processes are
  // on one host if they say the same of it (host_identity), which only tells what is faster.
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

  // Completes the operation. It is the caller's again; the transport must not touch it any more.
  void finish(Operation* operation) {
    if (operation == posting) {
      posting = nullptr;
      return;
    }
    ++finished;
    operation->queue->push(operation);
  }
};

}  // namespace sluice
