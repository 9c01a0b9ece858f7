// SPDX-License-Identifier: BSD-3-Clause
#include "src/ipc/slab_phases.h"

#include <algorithm>

namespace sluice {
namespace {

using Memory = SlabWork::Memory;

// Devices load 16 bytes at a time from addresses that are multiples of that.
constexpr size_t grain = 16;

bool is_sliced(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce;
}

bool has_slot_for_each_rank(Collective collective) {
  return collective == Collective::alltoall || collective == Collective::alltoallv ||
         collective == Collective::reduce_scatter;
}

size_t divide_up(size_t number, size_t by) { return (number + by - 1) / by; }

void add(const SlabWork& work, std::vector<SlabWork>* works) {
  if (work.bytes > 0) works->push_back(work);
}

}  // namespace

size_t SlabPhases::piece(const Call& call, Rank ranks, size_t slab) {
  const size_t buffers = is_sliced(call.collective) ? 3 : 2;
  const size_t slots = has_slot_for_each_rank(call.collective) ? ranks : 1;
  const size_t least = call.element * grain;
  return slab / buffers / slots / least * least;
}

SlabPhases::SlabPhases(const Call& call, Rank rank, Rank ranks, size_t slab, size_t most)
    : call_(call),
      rank_(rank),
      ranks_(ranks),
      has_slices_(is_sliced(call.collective)),
      buffers_(has_slices_ ? 3 : 2),
      slots_(has_slot_for_each_rank(call.collective) ? ranks : 1),
      piece_(piece(call, ranks, slab)),
      pieces_(divide_up(longest(most), piece_)) {}

size_t SlabPhases::in_bytes(const View& view, uint32_t block) const {
  return view.block(block).count * call_.element;
}

size_t SlabPhases::offset_of(const View& view, uint32_t block) const {
  return view.block(block).offset * call_.element;
}

// Bytes of the longest that goes through one slot.
size_t SlabPhases::longest(size_t of_alltoallv) const {
  size_t most = 0;
  switch (call_.collective) {
    case Collective::broadcast:
      return in_bytes(call_.output, whole);
    case Collective::alltoallv:
      return of_alltoallv;
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::alltoall:
      for (Rank i = 0; i < ranks_; ++i) most = std::max(most, in_bytes(call_.output, i));
      return most;
    case Collective::reduce_scatter:
      for (Rank i = 0; i < ranks_; ++i) most = std::max(most, in_bytes(call_.input, i));
      return most;
    default:
      return in_bytes(call_.input, whole);
  }
}

SlabPhases::Part SlabPhases::part(size_t of, size_t index) const {
  const size_t at = std::min(index * piece_, of);
  return {at, std::min(piece_, of - at)};
}

// The part of a piece that a rank reduces.
SlabPhases::Part SlabPhases::slice(size_t of, Rank index) const {
  const size_t least = call_.element * grain;
  const size_t each = divide_up(divide_up(of, ranks_), least) * least;
  const size_t at = std::min(index * each, of);
  return {at, std::min(each, of - at)};
}

SlabPhases::Spot SlabPhases::slot(Rank rank, size_t index, Rank slot) const {
  return {Memory::slab, rank, (index % buffers_ * slots_ + slot) * piece_};
}

void SlabPhases::list(size_t phase, std::vector<SlabWork>* works) const {
  if (phase == 0) keep_own(works);
  if (phase < pieces_) fill(phase, works);
  const size_t before = phase - 1, earlier = phase - 2;
  if (phase >= 1 && before < pieces_)
    has_slices_ ? reduce_slice(before, works) : fetch(before, works);
  if (has_slices_ && phase >= 2 && earlier < pieces_) fetch_slices(earlier, works);
}

// What a rank has for itself.
void SlabPhases::keep_own(std::vector<SlabWork>* works) const {
  const bool gathers =
      call_.collective == Collective::allgather || call_.collective == Collective::allgatherv;
  const bool scatters =
      call_.collective == Collective::alltoall || call_.collective == Collective::alltoallv;
  if (!gathers && !scatters) return;
  const size_t from = gathers ? 0 : offset_of(call_.input, rank_);
  add({SlabWork::Kind::copy,
       {Memory::input, rank_, from},
       {Memory::output, rank_, offset_of(call_.output, rank_)},
       in_bytes(call_.output, rank_)},
      works);
}

void SlabPhases::fill_from(const View& view, uint32_t block, size_t index, Rank to,
                           std::vector<SlabWork>* works) const {
  const Part cut = part(in_bytes(view, block), index);
  const Memory memory = &view == &call_.output ? Memory::output : Memory::input;
  add({SlabWork::Kind::copy,
       {memory, rank_, offset_of(view, block) + cut.at},
       slot(rank_, index, to),
       cut.bytes},
      works);
}

void SlabPhases::fill(size_t index, std::vector<SlabWork>* works) const {
  switch (call_.collective) {
    case Collective::broadcast:
      if (rank_ == call_.root) fill_from(call_.output, whole, index, 0, works);
      return;
    case Collective::alltoall:
    case Collective::alltoallv:
      for (Rank to = 0; to < ranks_; ++to) {
        if (to != rank_) fill_from(call_.input, to, index, to, works);
      }
      return;
    case Collective::reduce_scatter:
      for (Rank to = 0; to < ranks_; ++to) fill_from(call_.input, to, index, to, works);
      return;
    default:
      fill_from(call_.input, whole, index, 0, works);
  }
}

void SlabPhases::fetch_block(Rank from, uint32_t block, size_t index, Rank slot_there,
                             std::vector<SlabWork>* works) const {
  const Part cut = part(in_bytes(call_.output, block), index);
  add({call_.collective == Collective::reduce_scatter ? SlabWork::Kind::reduce
                                                      : SlabWork::Kind::copy,
       slot(from, index, slot_there),
       {Memory::output, rank_, offset_of(call_.output, block) + cut.at},
       cut.bytes},
      works);
}

// (Each rank begins with another one, so that they do not all read the same slab.)
void SlabPhases::fetch(size_t index, std::vector<SlabWork>* works) const {
  switch (call_.collective) {
    case Collective::broadcast:
      if (rank_ != call_.root) fetch_block(call_.root, whole, index, 0, works);
      return;
    case Collective::reduce_scatter:
      fetch_block(rank_, whole, index, rank_, works);
      return;
    default:
      for (Rank i = 1; i < ranks_; ++i) {
        const Rank from = (rank_ + i) % ranks_;
        fetch_block(from, from, index, slots_ > 1 ? rank_ : 0, works);
      }
  }
}

void SlabPhases::reduce_slice(size_t index, std::vector<SlabWork>* works) const {
  const Part own = slice(part(in_bytes(call_.input, whole), index).bytes, rank_);
  Spot spot = slot(rank_, index);
  spot.at += own.at;
  add({SlabWork::Kind::reduce, spot, spot, own.bytes}, works);
}

void SlabPhases::fetch_slices(size_t index, std::vector<SlabWork>* works) const {
  if (call_.collective == Collective::reduce && rank_ != call_.root) return;
  const Part cut = part(in_bytes(call_.input, whole), index);
  for (Rank i = 0; i < ranks_; ++i) {
    const Rank from = (rank_ + i) % ranks_;
    const Part one = slice(cut.bytes, from);
    Spot spot = slot(from, index);
    spot.at += one.at;
    add({SlabWork::Kind::copy, spot, {Memory::output, rank_, cut.at + one.at}, one.bytes}, works);
  }
}

}  // namespace sluice
