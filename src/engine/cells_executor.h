// SPDX-License-Identifier: BSD-3-Clause
//
// Runs an alltoallv whose short blocks go in cells (alltoallv.h): the exchange of cells,
// then that of the long blocks. While cells carry little, all blocks go in the second one.
#pragma once

#include <string>

#include "src/engine/alltoallv.h"
#include "src/engine/plan_executor.h"

namespace sluice {

class CellsExecutor final : public Executor {
 public:
  // no_memory: made while there was memory.
  CellsExecutor(PlanResources& resources, const Status& no_memory)
      : resources_(resources), no_memory_(no_memory), plan_(resources) {}

  Status start(const Algorithm& algorithm, const Call& call, uint32_t number) override;
  State advance() override;
  Failure failure() const override { return failure_.status.ok() ? plan_.failure() : failure_; }
  void cancel() override { plan_.cancel(); }
  std::string awaited() const override { return plan_.awaited(); }
  void trim() override { plan_.trim(); }
  // To be called between communicators: forgets what earlier exchanges were like.
  void reset() { padded_.reset(); }

 private:
  enum class Phase { cells, long_blocks };

  State end_cells();

  const PlanResources& resources_;
  const Status& no_memory_;
  PlanExecutor plan_;
  PaddedAlltoallv padded_;
  Phase phase_ = Phase::cells;
  const Algorithm* beside_ = nullptr;
  uint32_t tag_of_second_ = 0;  // Tag::call of the exchange of long blocks
  Failure failure_;
};

}  // namespace sluice
