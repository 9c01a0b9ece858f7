// SPDX-License-Identifier: BSD-3-Clause
//
// A link's shortcut: a pair of rings in memory that its two processes map. The memory has no name
// (memfd_create(2)), so nothing can be left of it, and it can't shrink under who maps it. The peer
// finds it through /proc, which lets processes of the same user do so; where it does not (another
// pid namespace, a process that may not be traced), there is no shortcut. Pages come as they are
// first used. Once both have mapped it no descriptor is left; children of a fork don't map it.
#pragma once

#include <memory>

#include "transports/conduit.h"

namespace sluice {

std::shared_ptr<ShortcutMaker> make_shm_shortcuts();

}  // namespace sluice
