// SPDX-License-Identifier: BSD-3-Clause
//
// Arenas in segments of shared memory. A segment belongs to the set of processes that map it; teams
// of the same processes (duplicates of a communicator, say) take leases in it, so that a program
// that makes thousands of communicators maps few segments. Safe to call from several threads.
#pragma once

#include <memory>

#include "transports/arena.h"

namespace sluice {

std::unique_ptr<ArenaSource> make_shm_source(const ProcessId& self);

// Processes that give the same number may share memory; whether they do, only trying shows.
uint64_t shm_host();

}  // namespace sluice
