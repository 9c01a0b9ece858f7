// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/conduit_stack.h"

namespace sluice {

Status add_filter(const TcpContext& context, const PeerIdentity& peer, ConduitStack& conduits) {
  if (!conduits.lacks_filter()) return {};
  const auto key = agree(context, peer);
  if (!key.ok()) return key.status();
  const ProcessId& self = context.options.self;
  const ConduitEnds ends{self, peer.process, *key, self < peer.process, peer.host};
  auto made = context.options.filter->make(conduits.plain(), ends);
  if (!made.ok()) return made.status().with(peer.label);
  conduits.add_filter(std::move(*made));
  return {};
}

}  // namespace sluice
