// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/get_in_flight.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "src/base/copy.h"
#include "src/engine/agreement.h"

namespace sluice {
namespace {

// Bytes reduced or got in a turn, in which the thread does nothing else. (1 MB got in pieces of 128
// KB took 94 us, 79 in one.)
constexpr size_t piece = size_t{128} << 10, got_at_once = size_t{512} << 10;
constexpr size_t half = piece + copy_page;

uint64_t address_of(const std::byte* memory) { return reinterpret_cast<uintptr_t>(memory); }

}  // namespace

// (Measured: shorter ones are as fast over links.)
bool GetInFlight::serves(const Call& call) {
  constexpr size_t least = size_t{64} << 10;
  switch (call.collective) {
    case Collective::allreduce:
    case Collective::broadcast:
    case Collective::allgather:
      return call.bytes >= least && call.element <= piece;
    default:
      return false;
  }
}

Status GetInFlight::start(const Algorithm&, const Call& call, uint32_t number) {
  call_ = &call;
  number_ = number;
  phase_ = Phase::telling;
  next_ = 0;
  done_ = 0;
  failure_ = {};
  if (reduces()) aside_.resize(2 * half);
  signature_ = encode_signature(call.collective, call.root);
  first_ = cells_.begin();
  shared_ = reduces() ? cells_.begin() : 0;
  last_ = cells_.begin();
  if (!call.input.source && !call.output.source) return {};
  return pack_all(call, cells_.size());
}

// Whether other ranks need this one's data.
bool GetInFlight::tells() const {
  return call_->collective != Collective::broadcast || cells_.rank() == call_->root;
}

// Whether this rank needs that one's.
bool GetInFlight::needs(Rank rank) const {
  if (rank == cells_.rank()) return false;
  return call_->collective != Collective::broadcast || rank == call_->root;
}

// What other ranks read of this one's.
Bytes GetInFlight::own() const {
  switch (call_->collective) {
    case Collective::broadcast:
      return {call_->output.base, call_->bytes};
    case Collective::allgather:
      return {call_->input.base, call_->bytes / cells_.size()};
    default:
      return {call_->input.base, call_->bytes};
  }
}

// Of the vector, what that rank reduces.
GetInFlight::Extent GetInFlight::share(Rank rank) const {
  const size_t count = call_->bytes / call_->element, ranks = cells_.size();
  const auto begin = [&](size_t of) { return count / ranks * of + std::min(of, count % ranks); };
  return {begin(rank) * call_->element, (begin(rank + size_t{1}) - begin(rank)) * call_->element};
}

GetInFlight::Told GetInFlight::told(Rank rank) const {
  Told told;
  std::memcpy(&told, cells_.data(rank, first_, sizeof told), sizeof told);
  return told;
}

Executor::State GetInFlight::advance() {
  if (phase_ == Phase::by_links) return links_.advance();
  const State state = step();
  if (!failure_.status.ok()) return State::failed;
  return state;
}

Executor::State GetInFlight::step() {
  switch (phase_) {
    case Phase::telling:
      if (!tell()) return State::waiting;
      phase_ = Phase::learning;
      [[fallthrough]];
    case Phase::learning:
      if (!learn_all()) return State::waiting;
      if (!all_in_reach()) return go_by_links();
      phase_ = reduces() ? Phase::reducing : Phase::getting;
      next_ = 0;
      return State::busy;
    case Phase::reducing:
      return reduce_piece();
    case Phase::sharing:
      if (!signal(shared_)) return State::waiting;
      phase_ = Phase::getting;
      [[fallthrough]];
    case Phase::getting:
      return get_piece();
    case Phase::ending:
      if (!signal(last_)) return State::waiting;
      phase_ = Phase::leaving;
      next_ = 0;
      [[fallthrough]];
    case Phase::leaving:
      if (!have_all_signalled()) return State::waiting;
      end_cells();
      return State::done;
    case Phase::by_links:
      break;
  }
  return links_.advance();
}

// False: the cell is not free yet.
bool GetInFlight::tell() {
  if (!tells()) return true;
  if (!cells_.may_write(first_)) return false;
  const Bytes mine = own();
  const Told told{address_of(mine.data), address_of(call_->output.base),
                  cma_.is_in_reach(mine.data, mine.size) &&
                      (!reduces() || cma_.is_in_reach(call_->output.base, call_->bytes))};
  std::memcpy(cells_.data(cells_.rank(), first_, sizeof told), &told, sizeof told);
  cells_.publish(first_, signature_, sizeof told, call_->bytes);
  return true;
}

bool GetInFlight::learn_all() {
  for (; next_ < cells_.size(); ++next_) {
    if (needs(next_) && (!cells_.find(next_, first_) || !is_like_own(next_))) return false;
  }
  return true;
}

bool GetInFlight::is_like_own(Rank rank) {
  const ArenaLine& line = *cells_.find(rank, first_);
  if (line.signature == signature_ && line.call_bytes == call_->bytes) return true;
  failure_ = {{Code::mismatch, "it is in " + describe_signature(line.signature) + " of " +
                                   std::to_string(line.call_bytes) +
                                   " bytes, this rank in one of " + std::to_string(call_->bytes)},
              rank};
  return false;
}

// The same on all ranks: all look at the same cells.
bool GetInFlight::all_in_reach() const {
  bool all = true;
  for (Rank rank = 0; rank < cells_.size(); ++rank) {
    if (needs(rank) || (rank == cells_.rank() && tells())) all &= told(rank).is_in_reach != 0;
  }
  return all;
}

Executor::State GetInFlight::go_by_links() {
  const char* const name = call_->collective == Collective::broadcast ? "binomial" : "ring";
  failure_.status = links_.start(*find_algorithm(call_->collective, name), *call_, number_);
  if (!failure_.status.ok()) return State::failed;
  end_cells();
  phase_ = Phase::by_links;
  return links_.advance();
}

// Combines the next piece of this rank's share of every operand, in the order of ranks.
Executor::State GetInFlight::reduce_piece() {
  const Extent mine = share(cells_.rank());
  const size_t bytes = std::min(piece / call_->element * call_->element, mine.bytes - done_);
  if (bytes > 0 && !combine_piece(mine.offset + done_, bytes)) return State::failed;
  done_ += bytes;
  if (done_ < mine.bytes) return State::busy;
  phase_ = Phase::sharing;
  done_ = 0;
  return State::busy;
}

bool GetInFlight::combine_piece(size_t offset, size_t bytes) {
  const Rank ranks = cells_.size();
  const Reduction& with = call_->reduction;
  std::byte* const out = call_->output.base + offset;
  const std::byte* left = nullptr;
  std::byte* const sum = aside_.data();
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::byte* operand = call_->input.base + offset;
    if (rank != cells_.rank()) {
      const uint64_t from = told(rank).input + offset;
      std::byte* const to = place_like(rank == 0 ? sum : aside_.data() + half, from);
      if (!get(rank, from, to, bytes)) return false;
      operand = to;
    }
    if (!left) {
      left = operand;
      continue;
    }
    std::byte* const to = rank + 1 == ranks ? out : place_like(sum, told(0).input + offset);
    with.kernel(left, operand, to, bytes / call_->element, with.context);
    left = to;
  }
  return true;
}

// Gets a piece of what some rank has, from the neighbour on, so that not all read from one.
Executor::State GetInFlight::get_piece() {
  for (; next_ + 1 < cells_.size(); ++next_, done_ = 0) {
    const Rank rank = (cells_.rank() + 1 + next_) % cells_.size();
    if (!needs(rank)) continue;
    if (reduces() && !cells_.find(rank, shared_)) return State::waiting;
    const bool is_whole = get_from(rank);
    if (!failure_.status.ok()) return State::failed;
    if (!is_whole) return State::busy;
  }
  if (call_->collective == Collective::allgather) {
    std::byte* const block =
        call_->output.base + call_->output.block(cells_.rank()).offset * call_->element;
    const Bytes mine = own();
    if (block != mine.data) copy_bytes(block, mine.data, mine.size);
  }
  phase_ = Phase::ending;
  return State::busy;
}

// Whether all has been got from that rank.
bool GetInFlight::get_from(Rank rank) {
  const Told there = told(rank);
  Extent from{0, own().size}, to{0, own().size};
  uint64_t base = there.input;
  if (reduces()) {
    from = to = share(rank);
    base = there.output;
  } else if (call_->collective == Collective::allgather) {
    to.offset = call_->output.block(rank).offset * call_->element;
  }
  const size_t bytes = std::min(got_at_once, from.bytes - done_);
  std::byte* const here = call_->output.base + to.offset + done_;
  if (bytes > 0 && !get(rank, base + from.offset + done_, here, bytes)) return false;
  done_ += bytes;
  return done_ == from.bytes;
}

bool GetInFlight::get(Rank rank, uint64_t address, std::byte* to, size_t bytes) {
  const int error = cma_.cma_get(rank, address, to, bytes);
  if (error == 0) return true;
  const std::string why = std::generic_category().message(error);
  failure_ = {error == ESRCH ? Status(Code::peer_lost, "its process is gone")
                             : Status(Code::internal, "its memory can't be read: " + why, error),
              rank};
  return false;
}

bool GetInFlight::signal(uint64_t number) {
  if (!cells_.may_write(number)) return false;
  cells_.publish(number, signature_, 0, call_->bytes);
  return true;
}

// Those that read this rank's data.
bool GetInFlight::have_all_signalled() {
  for (; tells() && next_ < cells_.size(); ++next_) {
    if (!cells_.find(next_, last_)) return false;
  }
  return true;
}

void GetInFlight::end_cells() {
  cells_.end(first_);
  if (reduces()) cells_.end(shared_);
  cells_.end(last_);
}

Executor::Failure GetInFlight::failure() const {
  return phase_ == Phase::by_links && failure_.status.ok() ? links_.failure() : failure_;
}

void GetInFlight::cancel() {
  if (phase_ == Phase::by_links) links_.cancel();
  call_ = nullptr;
}

void GetInFlight::trim() {
  aside_ = {};
  links_.trim();
}

std::string GetInFlight::awaited() const {
  if (!call_) return "nothing";
  if (phase_ == Phase::by_links) return links_.awaited();
  const uint64_t cell = phase_ <= Phase::learning  ? first_
                        : phase_ <= Phase::getting ? shared_
                                                   : last_;
  std::vector<Rank> missing;
  for (Rank rank = 0; rank < cells_.size(); ++rank) {
    const bool is_needed = phase_ >= Phase::ending ? rank != cells_.rank() : needs(rank);
    if (is_needed && cell != 0 && !cells_.find(rank, cell)) missing.push_back(rank);
  }
  return missing.empty() ? "room for its data" : describe_ranks(missing);
}

}  // namespace sluice
