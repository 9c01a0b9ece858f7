// SPDX-License-Identifier: BSD-3-Clause
//
// The table of the verbs module, without a device: queue pairs of this process write each other's
// memory. Nothing happens when it is posted. Each poll lets the network take some random steps: a
// step moves a part of one write, or reports one completion. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/verbs/module.h"

namespace sluice::fake_verbs {

constexpr int flushed = 5, last_status = 21;  // status numbers

struct Settings {
  uint64_t seed = 1;
  uint32_t max_message = 1U << 30;
  uint32_t inlined = 64;
  int refuse_region = 0;  // errno of registration
  bool lose_events = false, double_events = false;
  bool active = true, ethernet = true;
};

// Forgets everything. All queues must be gone.
void reset(const Settings& settings);
Settings& settings();
const SluiceVerbs& table();

// The next write of any queue that reaches the network fails so, and breaks its queue.
void fail_next(int status);
// Completes an immediate at every queue, as a peer that lies would.
void forge(uint32_t immediate);
// Stops all steps, or lets them go on.
void hold(bool held);
// Takes so many steps.
void step(int count);

struct Counts {
  uint64_t writes, signalled, bytes, inlined;
  uint64_t completions;    // polled, of both kinds
  uint64_t no_receive;     // immediates that met no receive request: a broken bound
  uint64_t overruns;       // requests beyond the depth
  uint64_t not_allowed;    // writes outside of registered memory
  uint64_t split;          // writes longer than max_message
  size_t regions, queues;  // now
};
Counts counts();

}  // namespace sluice::fake_verbs
