// SPDX-License-Identifier: BSD-3-Clause
//
// What a process keeps of the teams it has formed: the peers. A new communicator of the same
// processes in the same order has its team after one exchange, as these have told each other all
// there is to tell.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "transports/transport.h"

namespace sluice {

// Of a team that was formed. It has this id; who has been in it with the same rank knows the same.
struct Acquaintance {
  TeamId id;
  uint32_t rank;
  std::vector<Peer> peers;
  std::vector<uint32_t> hosts;  // as in Shape
  bool shares;                  // its ranks met in an arena; else they are not all on one host
};

class Acquaintances {
 public:
  static constexpr size_t most = 16;  // the one that was not used for longest has to go

  // Any thread may do these. A mark is equal for communicators that probably have the same
  // processes in the same order (Bootstrap::mark). What is put replaces what is like it.
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
  std::vector<Entry> entries_;  // used last at the end
};

}  // namespace sluice
