// SPDX-License-Identifier: BSD-3-Clause
//
// What all links of an endpoint share. Guarded by the endpoint's lock, as all behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "transports/tcp/address.h"
#include "transports/tcp/tcp.h"
#include "transports/tcp/wire.h"
#include "transports/transport.h"

namespace sluice {

class Link;

struct TcpShared {
  TcpOptions options;
  Key key{};
  uint64_t host = 0;
  std::vector<Interface> all, chosen;

  std::vector<Link*> pending;  // links with something to do, each once
  // Closes a connection of somebody who has not said who it is, for its descriptor. False if there
  // is none.
  std::function<bool()> make_room;
  const Status no_memory{Code::memory,
                         "no memory for what a peer sent"};  // made while there is some
  bool unfinished = false;  // a link stopped though it could have gone on
  uint64_t ended = 0;       // links so far

  // The operation being posted: that it is done is told by the post's return value.
  Operation* posting = nullptr;
  uint64_t finished = 0;  // operations so far
  uint64_t heard = 0;     // of these, when this turn began: of later ones no caller has heard yet

  // Whether this is how that process, and no other, answers this one's greeting.
  bool answers(const Greeting& greeting, const ProcessId& process) const {
    return greeting.from == process && greeting.to == options.self && greeting.key == key;
  }

  // The operation is its owner's again, and not to be touched.
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
