// SPDX-License-Identifier: BSD-3-Clause
//
// A link's shortcut: a pair of rings in a segment without a name (transports/shm/segment.h), so
// that nothing can be left of it. Where the peer may not open it (a pid namespace of its own, a
// process that may not be traced) there is no shortcut: a link has its socket. Pages come as they
// are first used.
#pragma once

#include <memory>

#include "transports/conduit.h"

namespace sluice {

std::shared_ptr<ShortcutMaker> make_shm_shortcuts();

}  // namespace sluice
