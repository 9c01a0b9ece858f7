// SPDX-License-Identifier: BSD-3-Clause
#include "src/memory/placement.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>

namespace sluice {
namespace {

bool is_on_host(const Side& side) { return side.place.is_host(); }

// Whether blocks are dense and consecutive.
bool is_consecutive(const Side& side) { return !side.counts && side.type->is_dense(2); }

// Whether blocks are dense and consecutive; true for a side that does not exist.
bool is_adjacent(const Side& side) {
  return !side.type || (is_on_host(side) && is_consecutive(side));
}

}  // namespace

bool has_dense_blocks(const Side& side, bool reduces) {
  if (side.type->is_dense(2)) return true;
  if (reduces && side.blocks > 1) return false;
  if (!side.counts) return side.type->is_dense(side.count);
  for (uint32_t i = 0; i < side.blocks; ++i) {
    if (side.elements(i) > 0 && !side.type->is_dense(side.elements(i))) return false;
  }
  return true;
}

void view_in_place(const Side& side, size_t units, size_t element, Staging& staging, View* view) {
  view->base = offset_by(side.buffer, side.type->start);
  view->count = side.count * units;
  if (is_consecutive(side) || (!side.counts && side.blocks == 1)) return;
  // Offsets count from the lowest block. (The displacement of an empty block may be anything.)
  ptrdiff_t lowest = std::numeric_limits<ptrdiff_t>::max();
  size_t before = 0;
  for (uint32_t i = 0; i < side.blocks; ++i) {
    if (side.elements(i) > 0) lowest = std::min(lowest, side.displacement(i, before));
    before += side.elements(i);
  }
  if (before == 0) lowest = 0;
  view->base = offset_by(view->base, lowest);
  staging.counts.resize(side.blocks);
  staging.offsets.resize(side.blocks);
  before = 0;
  for (uint32_t i = 0; i < side.blocks; ++i) {
    const ptrdiff_t from_lowest = side.displacement(i, before) - lowest;
    before += side.elements(i);
    staging.counts[i] = side.elements(i) * units;
    staging.offsets[i] = staging.counts[i] > 0 ? static_cast<size_t>(from_lowest) / element : 0;
  }
  view->counts = staging.counts;
  view->offsets = staging.offsets;
}

void place_staying_block(const UnplacedCall& unplaced, Call* call) {
  if (!scatters(*call) || unplaced.output.type) return;
  const View::Extent own = call->input.block(call->root);
  call->output = {};
  call->output.base =
      offset_by(call->input.base, static_cast<ptrdiff_t>(own.offset * call->element));
  call->output.count = own.count;
}

void view_in_place(const UnplacedCall& unplaced, StagingPair& staging, Call* call) {
  const auto place = [call](const Side& side, Staging& numbers, View* view) {
    if (side.type) view_in_place(side, units_of(side, *call), call->element, numbers, view);
  };
  place(unplaced.output, staging.output, &call->output);
  place(unplaced.input, staging.input, &call->input);
  place_staying_block(unplaced, call);
}

// (Copies must have ended before their memory is used by others.)
Placement::~Placement() {
  several_.reset();
  staged_input_.stop();
  staged_output_.stop();
  input_.unpin();
  output_.unpin();
}

// Whether each block is dense in the program's memory, and the processor can touch it.
bool Placement::is_dense(const Side& side) const {
  return !stages_all_ && is_on_host(side) &&
         has_dense_blocks(side, unplaced_.call.reduction.kernel);
}

Status Placement::begin() try {
  if (!unplaced_.others.empty()) return begin_several();
  if (!stages_all_ && !unplaced_.set_aside && is_adjacent(unplaced_.output) &&
      is_adjacent(unplaced_.input)) {
    if (unplaced_.output.type) place_in_buffer(unplaced_.output, output_, &unplaced_.call.output);
    if (unplaced_.input.type) place_in_buffer(unplaced_.input, input_, &unplaced_.call.input);
    if (!unplaced_.output.type) place_staying_block(unplaced_, &unplaced_.call);
    return {};
  }
  Status status = unplaced_.output.type ? begin_output() : Status();
  if (status.ok() && unplaced_.input.type) status = begin_input();
  if (status.ok()) place_staying_block(unplaced_, &unplaced_.call);
  return status;
} catch (const std::bad_alloc&) {
  return {Code::memory, "no memory for the places of " + std::to_string(unplaced_.output.blocks) +
                            " ranks' data"};
}

Status Placement::begin_several() {
  several_ = std::make_unique<SeveralBuffers>(unplaced_, output_, wait_);
  return several_->begin(stages_all_);
}

Status Placement::begin_output() {
  const Side& side = unplaced_.output;
  View& view = unplaced_.call.output;
  if (is_dense(side)) {
    place_in_buffer(side, output_, &view);
    return {};
  }
  if (Status status = place_apart(side, output_, &view); !status.ok()) return status;
  const auto way = unplaced_.filled ? StagedSide::Way::pack : StagedSide::Way::unpack;
  (unplaced_.filled ? view.source : view.sink) = &staged_output_;
  return staged_output_.begin(way, side, unplaced_.call.element, view.base, output_);
}

Status Placement::begin_input() {
  const Side& side = unplaced_.input;
  View& view = unplaced_.call.input;
  if (!unplaced_.set_aside && is_dense(side)) {
    place_in_buffer(side, input_, &view);
    return {};
  }
  if (Status status = place_apart(side, input_, &view); !status.ok()) return status;
  Status status =
      staged_input_.begin(StagedSide::Way::pack, side, unplaced_.call.element, view.base, input_);
  if (!status.ok()) return status;
  if (unplaced_.set_aside) return staged_input_.finish();
  view.source = &staged_input_;
  return {};
}

Status Placement::end() {
  Status status = several_                     ? several_->finish()
                  : unplaced_.call.output.sink ? staged_output_.finish()
                                               : Status();
  staged_input_.stop();
  input_.trim();
  output_.trim();
  return status.ok() ? staged_input_.failure() : status;
}

Status Placement::place_apart(const Side& side, Staging& staging, View* view) const {
  const size_t units = units_of(side, unplaced_.call);
  view->count = side.count * units;
  view->base = staging.reserve(side.bytes(), side.place);
  if (!view->base) {
    return {Code::memory, "no memory to pack " + std::to_string(side.bytes()) + " bytes"};
  }
  if (!side.counts) return {};
  set_packed_blocks(side, units, staging);
  view->counts = staging.counts;
  view->offsets = staging.offsets;
  return {};
}

}  // namespace sluice
