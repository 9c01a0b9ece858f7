// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/plan_memory.h"

#include <algorithm>
#include <new>
#include <string>

#include "src/base/copy.h"

namespace sluice {

void Scratch::Free::operator()(std::byte* data) const {
  ::operator delete(data, std::align_val_t(alignment));
}

bool Scratch::reserve(size_t bytes) {
  if (bytes <= whole_.size) return true;
  *this = Scratch();
  void* data = ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
  if (!data) return false;
  data_.reset(static_cast<std::byte*>(data));
  whole_ = {data_.get(), bytes};
  return true;
}

void PlanMemory::set_call(const Plan& plan, const Call& call, size_t segment) {
  plan_ = &plan;
  call_ = call;
  segment_ = std::max<size_t>(segment / call.element, 1) * call.element;
  is_packed_ = call_.input.source || call_.output.source || call_.output.sink;
}

// (Only sizes are read, so scratch may be anywhere.)
size_t PlanMemory::measure() {
  const size_t bytes = size_scratch();
  resolve(reinterpret_cast<std::byte*>(Scratch::aligned(1)));
  return bytes;
}

// Sets the offsets of slots. The bytes of all; a device also needs a segment for what is received
// into its own operand. (One is enough, as the device works in order.)
size_t PlanMemory::size_scratch() {
  slots_.clear();
  size_t bytes = 0;
  for (const Piece& like : plan_->scratch) {
    slots_.push_back(bytes);
    const size_t count = view(like.area).block(like.block).count;
    bytes += Scratch::aligned(cut(count, like.part).count * call_.element);
  }
  return call_.device ? bytes + segment_ : bytes;
}

namespace {

bool is_same(const View& one, const View& other) {
  return one.base == other.base && one.count == other.count &&
         one.counts.data() == other.counts.data() && one.offsets.data() == other.offsets.data() &&
         one.source == other.source && one.sink == other.sink;
}

}  // namespace

bool PlanMemory::is_placed_for(const Call& call) const {
  return call.collective == call_.collective && call.root == call_.root &&
         call.bytes == call_.bytes && call.element == call_.element &&
         call.reduction.kernel == call_.reduction.kernel &&
         call.reduction.context == call_.reduction.context && is_same(call.input, call_.input) &&
         is_same(call.output, call_.output);
}

Status PlanMemory::place() {
  const size_t bytes = size_scratch();
  std::byte* scratch = nullptr;
  if (call_.device) {
    scratch = call_.device->scratch(bytes);
  } else if (scratch_.reserve(bytes)) {
    scratch = scratch_.data();
  }
  if (!scratch && bytes > 0) {
    return {Code::memory, "no memory for " + std::to_string(bytes) + " bytes of scratch"};
  }
  if (call_.device) operand_ = scratch + bytes - segment_;
  resolve(scratch);
  return {};
}

void PlanMemory::resolve(std::byte* scratch) {
  runs_.resize(plan_->pieces.size());
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Piece& piece = plan_->pieces[i];
    if (piece.area == Area::scratch) {
      const Piece& like = plan_->scratch[piece.block];
      const size_t count = cut(view(like.area).block(like.block).count, like.part).count;
      const Range range = cut(count, piece.part);
      runs_[i] = {scratch + slots_[piece.block] + range.first * call_.element,
                  range.count * call_.element};
      continue;
    }
    const View::Extent block = view(piece.area).block(piece.block);
    const Range range = cut(block.count, piece.part);
    runs_[i] = {view(piece.area).base + (block.offset + range.first) * call_.element,
                range.count * call_.element};
  }
}

size_t PlanMemory::bytes_of(const Slice& slice) const {
  size_t bytes = 0;
  for (uint32_t i = 0; i < slice.count; ++i) bytes += runs_[slice.first + i].size;
  return bytes;
}

bool PlanMemory::has(const Slice& slice, Packing* View::*way) const {
  if (!is_packed_) return false;
  const auto pieces = plan_->of(slice);
  return std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return piece.area != Area::scratch && view(piece.area).*way;
  });
}

PlanMemory::Cursor PlanMemory::seek(const Slice& slice, size_t offset) const {
  Cursor cursor{runs_.data() + slice.first, offset};
  while (cursor.offset > 0 && cursor.offset >= cursor.run->size) {
    cursor.offset -= cursor.run->size;
    ++cursor.run;
  }
  return cursor;
}

std::span<const Bytes> PlanMemory::gather(const Slice& slice, size_t offset, size_t bytes,
                                          Bytes* into) const {
  if (bytes == 0) return {};
  size_t count = 0;
  visit_runs(seek(slice, offset), bytes, [&](const Cursor& at, size_t size) {
    into[count++] = {at.data(), size};
  });
  return {into, count};
}

void PlanMemory::combine(Cursor left, Cursor right, Cursor out, size_t bytes) const {
  const auto room = [](const Cursor& at) { return at.run->size - at.offset; };
  const auto step_by = [](Cursor& at, size_t size) {
    at.offset += size;
    if (at.offset == at.run->size) at = {at.run + 1, 0};
  };
  while (bytes > 0) {
    while (room(left) == 0) left = {left.run + 1, 0};
    while (right.run && room(right) == 0) right = {right.run + 1, 0};
    while (room(out) == 0) out = {out.run + 1, 0};
    size_t size = std::min({bytes, room(left), room(out)});
    if (right.run) size = std::min(size, room(right));
    std::byte* const target = out.data();
    const std::byte* const first = left.data();
    if (right.run) {
      combine_run(first, right.data(), target, size);
      step_by(right, size);
    } else if (target != first) {
      call_.device ? call_.device->copy(target, first, size) : copy_bytes(target, first, size);
    }
    step_by(left, size);
    step_by(out, size);
    bytes -= size;
  }
}

void PlanMemory::combine_run(const std::byte* left, const std::byte* right, std::byte* out,
                             size_t bytes) const {
  const size_t elements = bytes / call_.element;
  if (call_.device) return call_.device->reduce(left, right, out, elements);
  call_.reduction.kernel(left, right, out, elements, call_.reduction.context);
}

Status PlanMemory::pack(const Slice& slice, size_t offset, size_t bytes,
                        Packing* View::*way) const {
  Status failure;
  if (slice.count == 0) return failure;
  visit_runs(seek(slice, offset), bytes, [&](const Cursor& at, size_t size) {
    const Area area = plan_->pieces[static_cast<size_t>(at.run - runs_.data())].area;
    Packing* const packing = area == Area::scratch ? nullptr : view(area).*way;
    if (!packing) return;
    packing->move(static_cast<size_t>(at.data() - view(area).base), size);
    if (failure.ok()) failure = packing->failure();
  });
  return failure;
}

}  // namespace sluice
