// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/cells_executor.h"

namespace sluice {

Status CellsExecutor::start(const Algorithm& algorithm, const Call& call, uint32_t number) {
  failure_ = {};
  beside_ = algorithm.beside;
  tag_of_second_ = number | Tag::second_exchange;
  if (padded_.are_left_out()) {
    phase_ = Phase::long_blocks;
    return plan_.start(*beside_, call, number);
  }
  phase_ = Phase::cells;
  if (!padded_.fill(call, resources_.rank, resources_.size, algorithm.cell)) return no_memory_;
  if (Status status = why_not_packed(call); !status.ok()) return status;
  return plan_.start(algorithm, padded_.cells(), number);
}

Executor::State CellsExecutor::advance() {
  const State state = plan_.advance();
  return state == State::done && phase_ == Phase::cells ? end_cells() : state;
}

Executor::State CellsExecutor::end_cells() {
  Rank rank = 0;
  failure_.status = padded_.unpack(&rank);
  if (!failure_.status.ok()) failure_.peer = rank;
  if (!failure_.status.ok()) return State::failed;
  if (!padded_.rest().any()) return State::done;
  phase_ = Phase::long_blocks;
  failure_.status = plan_.start_exchange(*beside_, padded_.rest().call(), tag_of_second_);
  return failure_.status.ok() ? State::busy : State::failed;
}

}  // namespace sluice
