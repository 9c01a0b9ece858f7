// SPDX-License-Identifier: BSD-3-Clause
//
// The queue pairs by which a link's sides read each other's memory (reads.h), one or several, over
// one port or several. Messages go over them in turns. The sender chooses, and its keys serve that
// one alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "transports/peer_memory.h"
#include "transports/verbs/pair.h"
#include "transports/verbs/reads.h"

namespace sluice {

class VerbsLanes final : public PeerMemory {
 public:
  using Lane = std::unique_ptr<VerbsReads>;

  // The two sides number them alike. nullptr: this side lacks it.
  void set(size_t number, Lane lane) { lanes_[number] = std::move(lane); }
  // Fills in what the peer must know.
  void describe(VerbsEnd* end) const;
  // Connects those that both have.
  void connect(const VerbsEnd& peer);
  bool empty() const;
  // As VerbsReads::may_sleep.
  bool may_sleep();

  bool lend(const Operation& send, Bytes words, LentMessage* lent) override;
  Get get(const LentMessage& lent, Operation* receive, Getter* getter) override;
  bool report() override;
  void stop(Operation* receive) override;
  void end() override;
  void end(uint32_t part) override;
  std::optional<uint32_t> next_broken() override;
  void keep(const Operation& send) override;

 private:
  std::array<Lane, VerbsEnd::most_lanes> lanes_;
  size_t next_ = 0;  // to lend
};

}  // namespace sluice
