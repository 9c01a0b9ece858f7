// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/handshake.h"

#include "src/base/random.h"
#include "transports/tcp/proofs.h"

namespace sluice {

Result<PairKey> agree(const TcpContext& context, const PeerIdentity& peer) {
  auto key = context.options.prover->agree(context.options.self, peer.process, peer.public_key);
  if (!key.ok()) return key.status().with(peer.label);
  return key;
}

Result<Greeting> make_greeting(const TcpContext& context, const PeerIdentity& peer,
                               const PairKey& key, bool filters, FirstWords words,
                               const std::optional<Resuming>& resuming, uint32_t rail) {
  Greeting made{wire_version, context.options.self, peer.process, peer.key, context.options.window};
  made.invites = words == FirstWords::invitation;
  made.resumes = resuming.has_value();
  if (resuming) made.counts = resuming->counts;
  if (resuming) made.search = resuming->search;
  made.rail = rail;
  if (!are_proved(context, peer)) return made;
  made.proves = true;
  made.filters = filters;
  if (Status drawn = draw_random(made.nonce.data(), made.nonce.size()); !drawn.ok()) return drawn;
  const auto proof = first_proof(*context.options.prover, key, made);
  if (!proof.ok()) return proof.status();
  made.key = *proof;
  return made;
}

Result<GreetingAnswer> make_answer(const TcpContext& context, const Greeting& asked,
                                   const PairKey& key, bool refuses, const ByteCounts& counts) {
  const Prover& prover = *context.options.prover;
  Greeting made{wire_version, asked.to, asked.from, {}, context.options.window};
  made.proves = true;
  made.refuses = refuses;
  made.resumes = asked.resumes;
  made.counts = counts;
  made.search = asked.search;
  made.rail = asked.rail;
  made.filters = asked.filters && context.options.filter;
  if (Status drawn = draw_random(made.nonce.data(), made.nonce.size()); !drawn.ok()) return drawn;
  const auto second = second_proof(prover, key, asked, made);
  if (!second.ok()) return second.status();
  const auto last = last_proof(prover, key, asked, made);
  if (!last.ok()) return last.status();
  made.key = *second;
  return GreetingAnswer{made, *last};
}

GreetingAnswer make_answer(const TcpContext& context, const Greeting& asked, const Key& peer_key,
                           bool refuses, const ByteCounts& counts) {
  Greeting made{wire_version, asked.to, asked.from, peer_key, context.options.window};
  made.refuses = refuses;
  made.resumes = asked.resumes;
  made.counts = counts;
  made.search = asked.search;
  return {made, context.key};
}

bool is_answer(const TcpContext& context, const Greeting& answer, const Greeting& asked,
               const PairKey& key) {
  const bool is_of_it = answer.resumes == asked.resumes && answer.search == asked.search;
  if (!is_of_it || answer.rail != asked.rail) return false;
  if (!asked.proves) return context.answers(answer, asked.to);
  return answer.proves && answer.from == asked.to && answer.to == asked.from &&
         are_equal(answer.key, second_proof(*context.options.prover, key, asked, answer));
}

Status check_settings(const TcpContext& context, const PeerIdentity& peer, const Greeting& theirs) {
  const auto differs = [&](const char* what, uint64_t of_peer, uint64_t ours) {
    return Status(Code::mismatch, peer.label + " has " + what + " " + std::to_string(of_peer) +
                                      ", this process has " + std::to_string(ours));
  };
  if (theirs.version != wire_version) return differs("wire version", theirs.version, wire_version);
  const size_t window = context.options.window;
  if (theirs.window != window) return differs("a TCP window of", theirs.window, window);
  return {};
}

Status check_terms(const TcpContext& context, const PeerIdentity& peer, const Greeting& theirs,
                   bool within_host) {
  if (theirs.filters != is_filtered(context, within_host)) {
    const std::string whose = theirs.filters
                                  ? " wants an encrypted connection, this process does not"
                                  : " wants a connection in clear, this process an encrypted one";
    return {Code::mismatch, peer.label + whose + ": is SLUICE_TLS the same everywhere?"};
  }
  if (theirs.proves != are_proved(context, peer)) {
    return {Code::mismatch, peer.label +
                                " said a key in place of a proof, or a proof in place of "
                                "its key: is OpenSSL's module the same everywhere?"};
  }
  return {};
}

}  // namespace sluice
