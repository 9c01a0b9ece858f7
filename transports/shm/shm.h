// SPDX-License-Identifier: BSD-3-Clause
//
// Arenas in segments of shared memory. A segment belongs to the set of processes that map it. Teams
// of all or some of these processes (duplicates or parts of a communicator) take leases in it, so
// that a program with thousands of communicators maps few segments. With the lease, the team's rank
// 0 reserves the memory of the lines, about 9 KB a rank. Slots, another 265 KB a rank, are reserved
// by all ranks together when a call first needs them (src/engine/slots.h). Safe to call from
// several threads.
#pragma once

#include <memory>

#include "transports/shm/arena.h"

namespace sluice {

// most_slots: bytes of slots that all processes of a segment may have reserved at a time.
inline constexpr size_t usual_most_slots = size_t{1} << 30;
std::unique_ptr<ArenaSource> make_shm_source(const ProcessId& self,
                                             size_t most_slots = usual_most_slots);

// Processes with the same number may share memory; whether they can, only an attempt shows.
uint64_t shm_host();

}  // namespace sluice
