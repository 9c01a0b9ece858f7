// SPDX-License-Identifier: BSD-3-Clause
//
// The table of the verbs module, without a device: queue pairs of this process write each other's
// memory. Nothing happens when it is posted. Each poll lets the network take some random steps: a
// step moves a part of one write, or reports one completion. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "transports/verbs/module.h"

namespace sluice::fake_verbs {

constexpr int flushed = 5, last_status = 21;  // status numbers

struct Device {
  std::string name = "fake0";
  bool active = true, ethernet = true;
  uint16_t lid = 0;
  // RoCE v1; v2 over IPv6 of the link; v2 over IPv4, which has to be chosen; v1 over IPv4.
  std::vector<SluiceVerbsGid> gids = roce(203);
  int error = 0;       // errno of opening it
  int gids_error = 0;  // errno of reading its addresses
  bool foreign = false;

  static std::vector<SluiceVerbsGid> roce(uint8_t network);  // NETWORK.0.0.0
  static std::vector<SluiceVerbsGid> infiniband(uint8_t subnet);
};

struct Settings {
  uint64_t seed = 1;
  uint32_t max_message = 1U << 30;
  uint32_t inlined = 64;
  int refuse_region = 0;   // errno of registration
  int refuse_program = 0;  // the same of the program's memory
  int refuse_read = 0;     // errno of posting reads
  uint8_t reads = 16;      // under way at a time
  int read_steps = -1;     // that reads may still move in; -1: any number
  bool lose_events = false, double_events = false;
  std::vector<Device> devices{1};
  std::vector<size_t> lost;    // of these queues, in the order made, no write arrives
  std::set<std::string> dead;  // from these devices no write arrives
  bool gives_up = false;       // what is lost fails by now
  // The errno with which a queue of one device cannot be connected to one of the other; 0: it can.
  std::function<int(const std::string& own, const std::string& peer)> refuse_connect{};
};

// Forgets everything. All queues must be gone.
void reset(const Settings& settings);
Settings& settings();
void set_read_steps(int steps);
// How many queues have reads that have not been made.
size_t queues_with_reads();
const SluiceVerbs& table();

// The next write of any queue that reaches the network fails so, and breaks its queue.
void fail_next(int status);
// The next read, likewise.
void fail_next_read(int status);
// Completes an immediate at every queue, as a peer that lies would.
void forge(uint32_t immediate);
// Stops all steps, or lets them go on.
void hold(bool held);
// Takes so many steps.
void step(int count);
// Moves all that was posted, whose completions wait to be reported.
void move_all();
// Reports the next completion of the queue with that index, in the order in which they were made.
// False if none waits.
bool report(size_t index);
// The device has an event, which all who opened it see.
void happen(const SluiceVerbsEvent& event);
// From now on the device is gone: nothing is reported any more.
void lose_device();
// How the latest queue was connected.
SluiceVerbsWay latest_way();
// The number of the queue with that index.
uint32_t number_of(size_t index);

struct Counts {
  uint64_t writes, signalled, bytes, inlined;
  uint64_t reads, read_bytes;
  uint64_t completions;  // polled, of both kinds
  uint64_t arms;
  uint64_t no_receive;     // immediates that met no receive request: a broken bound
  uint64_t overruns;       // requests beyond the depth
  uint64_t not_allowed;    // writes outside of registered memory
  uint64_t split;          // writes longer than max_message
  size_t regions, queues;  // now
};
Counts counts();

}  // namespace sluice::fake_verbs
