// SPDX-License-Identifier: BSD-3-Clause
//
// Arenas in segments of shared memory. A segment belongs to the set of processes that map it; teams
// of all or some of them (duplicates of a communicator, say, and its parts) take leases in it, so
// that a program that makes thousands of communicators maps few segments. Safe to call from several
// threads.
#pragma once

#include <memory>

#include "transports/arena.h"

namespace sluice {

// most_slots: bytes of slots that the processes of a segment may have reserved at once.
inline constexpr size_t usual_most_slots = size_t{1} << 30;
std::unique_ptr<ArenaSource> make_shm_source(const ProcessId& self,
                                             size_t most_slots = usual_most_slots);

// Processes that give the same number may share memory; whether they do, only trying shows.
uint64_t shm_host();

}  // namespace sluice
