// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/call_by_mpi.h"

#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "src/mpi/host_copy_for_mpi.h"

namespace sluice {
namespace {

bool is_within_reach(const Side& side) {
  return !side.type || side.place.is_host() || is_mpi_cuda_aware();
}

// Whether MPI's function can take it, in the program's memory.
bool is_takeable(const Side& side, bool reduces) {
  return !side.type || (is_within_reach(side) && has_dense_blocks(side, reduces));
}

bool is_within_int(const Side& side) {
  return !side.type || side.bytes() <= size_t{std::numeric_limits<int>::max()};
}

}  // namespace

CallByMpi::CallByMpi(const Arguments& program, const Exchange& call, Position position,
                     const HandedOver& handed, const Process& process)
    : program_(program),
      call_(call),
      position_(position),
      handed_(handed),
      stage_(handed.way.by == Way::By::mpi_then_sluice ? Stage::warming : Stage::last),
      wait_(process.progress_mpi, process.knobs, process.oversubscription) {
  input_type_.replace(&call_.input);
  output_type_.replace(&call_.output);
  if (is_aside()) {
    aside_.emplace(call_, handed.way.aside);
  } else if (!reduces_in_place && call_.in_place && call_.call.collective == Collective::reduce) {
    call_.in_place = false;
    call_.set_aside = true;
  }
}

bool CallByMpi::begin() try {
  if (is_aside()) {
    failure_ = aside_->prepare(wait_);
    if (!aside_->is_telling()) way().is_timed = false;
  }
  way().begin();
  if (!place()) return fall_back({Code::invalid, "MPI has no counts for such data"});
  arguments_ = plain_.get();
  return true;
} catch (const std::bad_alloc&) {
  return fall_back({Code::memory, "no memory for a call of MPI's"});
}

bool CallByMpi::place() {
  Exchange& call = is_aside() ? aside_->exchange() : call_;
  is_where_it_lies_ = place_where_it_lies(call);
  return is_where_it_lies_ || place_apart(call);
}

bool CallByMpi::place_where_it_lies(Exchange& call) {
  const bool reduces = call.call.reduction.kernel != nullptr;
  if (!call.others.empty() || (call.set_aside && !call.in_place)) return false;
  if (!is_takeable(call.input, reduces) || !is_takeable(call.output, reduces)) return false;
  view_in_place(call, staging_, &call.call);
  return plain_.set(call, program_, position_);
}

bool CallByMpi::place_apart(Exchange& call) {
  if (!is_within_int(call.input) || !is_within_int(call.output)) return false;
  using Staged = Placement::Staged;
  for (const Staged staged : {Staged::where_needed, Staged::all}) {
    call.call.input = call.call.output = {};
    placement_.emplace(call, staging_, wait_, staged);
    failure_ = placement_->begin();
    if (!failure_.ok()) return false;
    if (!plain_.set(call, program_, position_)) continue;
    failure_ = pack_all(call.call, position_.size);
    if (!failure_.ok()) return false;
    put_input_in_place(call.call);
    return true;
  }
  return false;
}

void CallByMpi::put_input_in_place(Call& call) const {
  if (!call_.in_place || call_.set_aside || call.input.count == 0) return;
  if (!call_.output.type) return;  // of a scatter: its block is there
  std::byte* const place = place_in_output(call, position_.rank);
  if (call.input.base != place)
    std::memcpy(place, call.input.base, call.input.count * call.element);
}

// (The program's own arguments describe the same messages, in other datatypes; of these, MPI
// libraries choose their algorithm by bytes, and send blocks whole. The function that the program
// has called takes them, whatever the width of counts.)
bool CallByMpi::may_use_programs() const {
  const Collective collective = call_.call.collective;
  const bool sends_blocks = collective == Collective::alltoall || !has_common_size(collective);
  return sends_blocks && is_within_reach(call_.input) && is_within_reach(call_.output);
}

bool CallByMpi::fall_back(Status why) {
  placement_.reset();
  if (may_use_programs()) {
    failure_ = {};
    arguments_ = program_;
    is_programs_ = true;
    return true;
  }
  if (failure_.ok()) failure_ = std::move(why);
  return false;
}

// Of a reduce_scatter in place, whose result MPI has put where the input was.
void CallByMpi::take_result_from_input() {
  const Call& call = call_.call;
  if (!call_.in_place || !call_.set_aside || call.input.base == call.output.base) return;
  std::memcpy(call.output.base, call.input.base, call.output.count * call.element);
}

// (After an error MPI may still write to memory that it was given.)
Status CallByMpi::end(int result) {
  if (error_ == MPI_SUCCESS) error_ = result;
  if (result != MPI_SUCCESS) {
    staging_.input.abandon();
    staging_.output.abandon();
  }
  Status status;
  if (result == MPI_SUCCESS && placement_) {
    take_result_from_input();
    status = placement_->end();
  }
  placement_.reset();
  if (result == MPI_SUCCESS && stage_ != Stage::warming) way().end();
  return status;
}

}  // namespace sluice
