// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks as threads of one process: the transport for tests of all that stands on transports.
//
// It keeps every promise of the contract, and can be made as unkind as the contract allows: without
// a window a send is not done before its receive is posted; with a seed messages travel late and in
// any order. It measures nothing: every call takes the hub's one lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transports/transport.h"

namespace sluice {

struct LoopbackOptions {
  // Of each channel, in bytes. A message that finds no room in it, or any if it is 0, waits at its
  // sender until its receive is posted.
  size_t window = size_t{1} << 20;
  size_t max_message = size_t{1} << 20;
  // Not 0: no message moves when it is posted; calls of progress() move some of those under way, by
  // chance.
  uint64_t seed = 0;
};

// What its endpoints are joined by. May go before they do: they share what they need.
class LoopbackHub {
 public:
  explicit LoopbackHub(const LoopbackOptions& options = {});
  ~LoopbackHub();

  // `self` is not in use yet in this hub. Every endpoint may be called from several threads.
  std::unique_ptr<Endpoint> endpoint(const ProcessId& self);

  // As if the process had died without a word: its peers find it gone, and its own operations fail.
  void kill(const ProcessId& process);

  // So many have been sent.
  uint64_t messages() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace sluice
