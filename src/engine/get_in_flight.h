// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a long call in flight of ranks that share an arena and can read each other's memory (CMA):
// they tell each other in cells where their data is, read what they need, piece by piece, and leave
// when nobody needs theirs any more. If some rank's memory can't be read, the call goes over links.
//
// Cells of a call, in order: where a rank's data is; in a reduction, that its share of the result
// is there; that it has read all.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/engine/plan_executor.h"
#include "transports/shm/arena.h"

namespace sluice {

class GetInFlight final : public Executor {
 public:
  // Whether such calls can go this way; equal on all ranks.
  static bool serves(const Call& call);

  // All must outlive this. cma: this object's callers alone use it.
  GetInFlight(Cells& cells, Cma& cma, PlanResources& resources)
      : cells_(cells), cma_(cma), links_(resources) {}

  Status start(const Algorithm& algorithm, const Call& call, uint32_t number) override;
  State advance() override;
  Failure failure() const override;
  void cancel() override;
  std::string awaited() const override;
  bool notices_death() const override { return phase_ == Phase::by_links; }
  void trim() override;

 private:
  enum class Phase : uint8_t {
    telling,   // where the data is, once its cell is free
    learning,  // until all whose data is needed have told
    reducing,  // this rank's share
    sharing,   // tells that it is done
    getting,   // what others have
    ending,    // tells that nothing more is needed
    leaving,   // until nobody needs this rank's data
    by_links,
  };
  struct Told {
    uint64_t input, output;  // addresses
    uint64_t is_in_reach;
  };
  struct Extent {
    size_t offset, bytes;
  };

  bool reduces() const { return call_->reduction.kernel; }
  bool tells() const;
  bool needs(Rank rank) const;
  Bytes own() const;
  Extent share(Rank rank) const;
  Told told(Rank rank) const;

  State step();
  bool tell();
  bool learn_all();
  bool is_like_own(Rank rank);
  bool all_in_reach() const;
  State go_by_links();
  State reduce_piece();
  bool combine_piece(size_t offset, size_t bytes);
  State get_piece();
  bool get_from(Rank rank);
  bool get(Rank rank, uint64_t address, std::byte* to, size_t bytes);
  bool signal(uint64_t number);
  bool have_all_signalled();
  void end_cells();

  Cells& cells_;
  Cma& cma_;
  PlanExecutor links_;
  std::vector<std::byte> aside_;  // two pieces, each with room to be placed like another rank's
  const Call* call_ = nullptr;
  Phase phase_ = Phase::telling;
  uint64_t first_ = 0, shared_ = 0, last_ = 0;  // the cells; shared_ only in a reduction
  uint32_t signature_ = 0, number_ = 0;
  Rank next_ = 0;    // in order of ranks from this one's neighbour: done with those before
  size_t done_ = 0;  // bytes of this rank's share, or of what it gets from `next_`
  Failure failure_;
};

}  // namespace sluice
