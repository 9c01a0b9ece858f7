// SPDX-License-Identifier: BSD-3-Clause
//
// What all links of an endpoint share. The endpoint's lock guards it, and the links.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "transports/link/loans.h"
#include "transports/tcp/context.h"
#include "transports/transport.h"

namespace sluice {

class Link;

struct ReadyList {
  std::vector<Link*> links;  // with something to do, each once
  bool unfinished = false;   // a link stopped although it could have gone on
  uint64_t ended = 0;        // links that have ended so far
};

struct Completions {
  // The operation being posted. If it completes, the post's return value reports that, not the
  // queue.
  Operation* posting = nullptr;
  uint64_t finished = 0;  // operations completed so far
  uint64_t heard = 0;     // of these, when this turn began: of later ones no caller has heard yet

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

struct LinkShared : TcpContext {
  ReadyList ready;
  Completions completions;
  // Whether any link is connected to that host.
  std::function<bool(const std::string& host)> reaches;
  // Acceptor::is_invited.
  std::function<bool(const ProcessId&)> is_invited;
  Loans loans;
  Traffic traffic;
  size_t spreading = 0;  // links of which a probe has chosen several connections (spread_probe.h)
  std::set<std::string> reasons{};  // why links stayed on their sockets, as far as logged
};

}  // namespace sluice
