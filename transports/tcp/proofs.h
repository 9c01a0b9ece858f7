// SPDX-License-Identifier: BSD-3-Clause
//
// The three proofs of a connection (greeting.h), by challenge and response. Each is HMAC-SHA256
// with the secret of the two processes (Prover::agree) over a label of its own, the connecting
// side's greeting and, but for the first, the answer. (A greeting's own proof counts as zeros in
// what is hashed.)
//
//   first   the connecting side knows the key; can be recorded and replayed, and only keeps
//           strangers from getting an answer
//   second  the accepting side knows the key, and answers this greeting: it has the nonce
//   last    the connecting side knows the key, and answers this answer
//
// The labels keep a proof from serving as another one, and the processes' ids from serving in the
// other direction, or for another process.
#pragma once

#include "src/base/status.h"
#include "transports/conduit.h"
#include "transports/tcp/greeting.h"

namespace sluice {

inline constexpr size_t proof_bytes = std::tuple_size_v<Key>;

Result<Key> first_proof(const Prover& prover, const PairKey& key, const Greeting& asked);
Result<Key> second_proof(const Prover& prover, const PairKey& key, const Greeting& asked,
                         const Greeting& answer);
Result<Key> last_proof(const Prover& prover, const PairKey& key, const Greeting& asked,
                       const Greeting& answer);

// Compares all bytes: it takes the same time wherever the two differ.
bool are_equal(const Key& one, const Key& other);
// False also if there is no proof, for lack of memory.
inline bool are_equal(const Key& one, const Result<Key>& proof) {
  return proof.ok() && are_equal(one, *proof);
}

}  // namespace sluice
