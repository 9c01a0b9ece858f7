// SPDX-License-Identifier: BSD-3-Clause
//
// Endpoints whose links are upgraded to shared memory.
#pragma once

#include "tests/unit/transports/tcp_rig.h"
#include "transports/shm/upgrade.h"

namespace sluice {

inline TcpOptions with_upgrades() {
  TcpOptions options;
  options.upgrades = {make_shm_upgrades()};
  return options;
}

inline MakeEndpoint shm() { return tcp(with_upgrades()); }

}  // namespace sluice
