// SPDX-License-Identifier: BSD-3-Clause
//
// Endpoints whose links are upgraded to queue pairs of a network in this process.
#pragma once

#include "tests/unit/transports/fake_verbs.h"
#include "tests/unit/transports/tcp_rig.h"
#include "transports/verbs/upgrade.h"

namespace sluice {

inline MakeEndpoint with_verbs(TcpOptions options) {
  return [options](const ProcessId& self) mutable {
    options.upgrades = {make_verbs_upgrades({16 << 10, "", true, &fake_verbs::table()})};
    return tcp(options)(self);
  };
}

}  // namespace sluice
