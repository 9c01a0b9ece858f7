// SPDX-License-Identifier: BSD-3-Clause
//
// What a process remembers of each team that it formed: the peers. A new communicator of the same
// processes in the same order then needs one exchange to set its team up, because they know each
// other's addresses and settings already.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "transports/transport.h"

namespace sluice {

// A team that was formed. Each of its ranks remembers it under the same id, with its own rank.
struct Acquaintance {
  TeamId id;
  uint32_t rank;
  std::vector<Peer> peers;
  std::vector<uint32_t> hosts;  // as in Shape
  bool shares;  // its ranks share an arena; false: they are on several hosts, or may not share one
};

class Acquaintances {
 public:
  static constexpr size_t most = 16;  // then the least recently used is dropped

  // Any thread may call these. mark: the group fingerprint, equal for communicators that probably
  // have the same processes in the same order (Bootstrap::mark). `put` replaces an entry of the
  // same mark, rank and size.
  void put(uint64_t mark, std::shared_ptr<const Acquaintance> known);
  // nullptr if there is none.
  std::shared_ptr<const Acquaintance> find(uint64_t mark, uint32_t rank, size_t size);

 private:
  struct Entry {
    uint64_t mark;
    std::shared_ptr<const Acquaintance> known;
    bool is(uint64_t other, uint32_t rank, size_t size) const {
      return mark == other && known->rank == rank && known->peers.size() == size;
    }
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;  // most recently used last
};

}  // namespace sluice
