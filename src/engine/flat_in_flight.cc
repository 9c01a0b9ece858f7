// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/flat_in_flight.h"

#include <cstring>

#include "src/base/copy.h"
#include "src/engine/agreement.h"

namespace sluice {
namespace {

// Bytes of a rank's operand.
size_t operand_bytes(const Call& call, Rank ranks) {
  switch (call.collective) {
    case Collective::barrier:
      return 0;
    case Collective::allgather:
      return call.bytes / ranks;
    default:
      return call.bytes;
  }
}

}  // namespace

bool FlatInFlight::serves(const Call& call, Rank ranks) {
  switch (call.collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::broadcast:
    case Collective::barrier:
    case Collective::allgather:
      return operand_bytes(call, ranks) <= Cells::capacity;
    default:
      return false;
  }
}

Status FlatInFlight::start(const Algorithm&, const Call& call, uint32_t) {
  call_ = &call;
  number_ = cells_.begin();
  signature_ = encode_signature(call.collective, call.root);
  has_written_ = false;
  next_ = 0;
  failure_ = {};
  if (!call.input.source && !call.output.source) return {};
  return pack_all(call, cells_.size());
}

bool FlatInFlight::writes() const {
  return call_->collective != Collective::broadcast || cells_.rank() == call_->root;
}

bool FlatInFlight::reads(Rank rank) const {
  switch (call_->collective) {
    case Collective::broadcast:
      return rank == call_->root && rank != cells_.rank();
    case Collective::reduce:
      return cells_.rank() == call_->root;
    default:
      return true;
  }
}

FlatInFlight::Operand FlatInFlight::own() const {
  const bool is_root = call_->collective == Collective::broadcast;
  const std::byte* const data = is_root ? call_->output.base : call_->input.base;
  return {data, operand_bytes(*call_, cells_.size())};
}

Executor::State FlatInFlight::advance() {
  if (!has_written_ && !publish()) return State::waiting;
  if (!have_come()) return failure_.status.ok() ? State::waiting : State::failed;
  finish();
  cells_.end(number_);
  return State::done;
}

// False: other ranks still read what the place held before.
bool FlatInFlight::publish() {
  if (writes()) {
    if (!cells_.may_write(number_)) return false;
    const Operand operand = own();
    std::byte* const to = cells_.data(cells_.rank(), number_, operand.bytes);
    if (operand.bytes > 0) std::memcpy(to, operand.data, operand.bytes);
    cells_.publish(number_, signature_, operand.bytes, call_->bytes);
  }
  return has_written_ = true;
}

bool FlatInFlight::have_come() {
  for (; next_ < cells_.size(); ++next_) {
    if (!reads(next_)) continue;
    const ArenaLine* const line = cells_.find(next_, number_);
    if (!line || !is_like_own(next_, *line)) return false;
  }
  return true;
}

bool FlatInFlight::is_like_own(Rank rank, const ArenaLine& line) {
  if (line.signature == signature_ && line.call_bytes == call_->bytes) return true;
  failure_ = {{Code::mismatch, "it is in " + describe_signature(line.signature) + " of " +
                                   std::to_string(line.call_bytes) +
                                   " bytes, this rank in one of " + std::to_string(call_->bytes)},
              rank};
  return false;
}

void FlatInFlight::finish() {
  const size_t bytes = operand_bytes(*call_, cells_.size());
  switch (call_->collective) {
    case Collective::allreduce:
      return reduce();
    case Collective::reduce:
      if (cells_.rank() == call_->root) reduce();
      return;
    case Collective::broadcast:
      if (bytes > 0 && cells_.rank() != call_->root)
        std::memcpy(call_->output.base, cells_.data(call_->root, number_, bytes), bytes);
      return;
    case Collective::allgather:
      for (Rank rank = 0; rank < cells_.size() && bytes > 0; ++rank) {
        std::memcpy(call_->output.base + call_->output.block(rank).offset * call_->element,
                    cells_.data(rank, number_, bytes), bytes);
      }
      return;
    default:
      return;
  }
}

// In the order of ranks, so that all get the same bits.
void FlatInFlight::reduce() {
  const size_t bytes = call_->bytes;
  if (bytes == 0) return;
  const size_t count = bytes / call_->element;
  std::byte* const out = call_->output.base;
  const Reduction& with = call_->reduction;
  const auto operand = [&](Rank rank) { return cells_.data(rank, number_, bytes); };
  with.kernel(operand(0), operand(1), out, count, with.context);
  for (Rank rank = 2; rank < cells_.size(); ++rank) {
    with.kernel(out, operand(rank), out, count, with.context);
  }
}

std::string FlatInFlight::awaited() const {
  std::vector<Rank> missing;
  for (Rank rank = 0; call_ && rank < cells_.size(); ++rank) {
    if (reads(rank) && !cells_.find(rank, number_)) missing.push_back(rank);
  }
  return missing.empty() ? "room for its data" : describe_ranks(missing);
}

}  // namespace sluice
