// SPDX-License-Identifier: BSD-3-Clause
//
// A transport between ranks that are threads of one process. Tests use it for everything that is
// built on transports.
//
// It keeps every promise of the contract and can be as harsh as the contract allows: without a
// window, a send is not done before its receive is posted; with a seed, messages arrive late and in
// any order. Not for measurements: every call takes the hub's one lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transports/transport.h"

namespace sluice {

struct LoopbackOptions {
  // Bytes of each channel's window. A message that finds no room in it (any message if 0) stays
  // with its sender until its receive is posted.
  size_t window = size_t{1} << 20;
  size_t max_message = size_t{1} << 20;
  // If not 0, no message moves when it is posted. Calls of progress() move some messages in
  // transit, chosen at random.
  uint64_t seed = 0;
};

// Connects its endpoints. May be deleted before them: they share ownership of the state.
class LoopbackHub {
 public:
  explicit LoopbackHub(const LoopbackOptions& options = {});
  ~LoopbackHub();

  // self: not yet in use in this hub. Several threads may call an endpoint.
  std::unique_ptr<Endpoint> endpoint(const ProcessId& self);

  // As if the process had died silently: its peers see it gone, and its own operations fail.
  void kill(const ProcessId& process);

  // Number of messages sent so far.
  uint64_t messages() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace sluice
