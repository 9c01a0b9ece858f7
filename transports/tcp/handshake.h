// SPDX-License-Identifier: BSD-3-Clause
//
// What both sides of a new connection say in their greetings (greeting.h), and what they check of
// the other's.
#pragma once

#include <cstring>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "transports/conduit.h"
#include "transports/tcp/context.h"
#include "transports/tcp/greeting.h"
#include "transports/transport.h"

namespace sluice {

// What this process knows of another. Its address tells the keys.
struct PeerIdentity {
  explicit PeerIdentity(const ProcessId& id)
      : process(id), label("process " + std::to_string(id.low)) {}
  PeerIdentity(const PeerIdentity&) = delete;
  PeerIdentity& operator=(const PeerIdentity&) = delete;
  ~PeerIdentity() { explicit_bzero(key.data(), key.size()); }

  const ProcessId process;
  std::string label, host{};
  bool known = false;  // its address has come
  bool proves = false;
  Key key{};               // said where there are no proofs
  PublicKey public_key{};  // if it proves
};

// Whether greetings to and from it have proofs.
inline bool are_proved(const TcpContext& context, const PeerIdentity& peer) {
  return context.options.prover && peer.proves;
}
// Whether a connection has a filter.
inline bool is_filtered(const TcpContext& context, bool within_host) {
  return context.options.filter && context.options.filter->filters(within_host);
}

// The secret of this process and the peer.
Result<PairKey> agree(const TcpContext& context, const PeerIdentity& peer);

// What a side says first: the asking side's greeting, or the other's invitation. key: for its
// proof. resuming: if it resumes. rail: its number, if the connection is to be one.
enum class FirstWords : uint8_t { greeting, invitation };
struct Resuming {
  ByteCounts counts{};
  uint64_t search = 0;  // its number; in an invitation that of the connection which broke
};
Result<Greeting> make_greeting(const TcpContext& context, const PeerIdentity& peer,
                               const PairKey& key, bool filters,
                               FirstWords words = FirstWords::greeting,
                               const std::optional<Resuming>& resuming = {}, uint32_t rail = 0);
// The answer, and the last proof, which must follow it.
struct GreetingAnswer {
  Greeting greeting;
  Key last{};
};
// With proofs. counts: told if the greeting resumes.
Result<GreetingAnswer> make_answer(const TcpContext& context, const Greeting& asked,
                                   const PairKey& key, bool refuses, const ByteCounts& counts);
// Without proofs, to the process with this key: that this side has given up its link; or to one
// that resumes.
GreetingAnswer make_answer(const TcpContext& context, const Greeting& asked, const Key& peer_key,
                           bool refuses, const ByteCounts& counts);
// Whether this answers that greeting or invitation.
bool is_answer(const TcpContext& context, const Greeting& answer, const Greeting& asked,
               const PairKey& key);

// Code::mismatch if the peer has another wire version or another window.
Status check_settings(const TcpContext& context, const PeerIdentity& peer, const Greeting& theirs);
// Code::mismatch unless both sides prove, and filter this connection, or neither does. The peer is
// known.
Status check_terms(const TcpContext& context, const PeerIdentity& peer, const Greeting& theirs,
                   bool within_host);

}  // namespace sluice
