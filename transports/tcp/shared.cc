// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/shared.h"

#include "transports/tcp/proofs.h"

namespace sluice {

bool TcpShared::knows_key(const Greeting& greeting) const {
  return greeting.to == options.self && !greeting.proves && !options.filter &&
         are_equal(greeting.key, key);
}

}  // namespace sluice
