// SPDX-License-Identifier: BSD-3-Clause
//
// The public keys of the processes that may connect, from the addresses that MPI carried. The
// accepting side needs the key of whoever greets before it can check a proof, and a peer may greet
// before this process has a channel to it. So an endpoint is told of all peers of each team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "transports/tcp/address.h"
#include "transports/transport.h"

namespace sluice {

class PeerKeys {
 public:
  // Each peer stays until it was removed as often as added. Throws std::bad_alloc, with no effect.
  void add(const Peer& peer) {
    const auto [at, is_new] = known_.try_emplace(peer.process);
    if (is_new) at->second.key = AddressBlob::public_key_of(peer.address);
    ++at->second.teams;
  }
  void remove(const ProcessId& process) noexcept {
    const auto found = known_.find(process);
    if (found != known_.end() && --found->second.teams == 0) known_.erase(found);
  }
  size_t size() const { return known_.size(); }
  // nullptr: the process is not known (yet). A known one without a key has no Prover.
  const std::optional<PublicKey>* find(const ProcessId& process) const {
    const auto found = known_.find(process);
    return found == known_.end() ? nullptr : &found->second.key;
  }

 private:
  struct Entry {
    std::optional<PublicKey> key;
    uint32_t teams = 0;
  };

  std::map<ProcessId, Entry> known_;
};

}  // namespace sluice
