// SPDX-License-Identifier: BSD-3-Clause
//
// A link's upgrade to shared memory: a pair of rings in a segment without a name
// (transports/shm/segment.h), so that nothing is left behind. If the peer may not open the segment
// (a process namespace of its own, a process that may not be traced), there is no upgrade, and the
// link stays on its socket. Pages are allocated at first use. If the kernel lets one side read the
// other's memory (CMA), large messages need not pass through the rings.
#pragma once

#include <cstddef>
#include <memory>

#include "transports/conduit.h"

namespace sluice {

// single_copy: whether this side may read the peer's memory. get_least: bytes of a message from
// which on it does.
std::shared_ptr<UpgradeMaker> make_shm_upgrades(bool single_copy = true, size_t get_least = 1);

}  // namespace sluice
