// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/shared.h"

#include "transports/tcp/proofs.h"

namespace sluice {

bool TcpShared::knows_key(const Greeting& greeting) const {
  if (greeting.to != options.self) return false;
  if (!greeting.proves) return are_equal(greeting.key, key);
  return options.prover && are_equal(greeting.key, first_proof(*options.prover, key, greeting));
}

}  // namespace sluice
