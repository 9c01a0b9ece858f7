// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/aside.h"

#include <cstring>
#include <new>

#include "src/memory/staged_side.h"

namespace sluice {
namespace {

bool is_on_host(const Side& side) { return !side.type || side.place.is_host(); }

bool stays_in_place(const Exchange& call) {
  return call.in_place && (reduces_in_place || call.call.collective != Collective::reduce);
}

// Where the operand must be copied to; nullptr: nowhere.
std::byte* place_in_copy(const Exchange& call, const AsideMemory& scratch) {
  if (call.in_place) return stays_in_place(call) ? scratch.result : scratch.operand;
  return is_on_host(call.input) ? nullptr : scratch.operand;
}

Status copy_from_device(const Side& operand, std::byte* to, CopyWait& wait) try {
  Staging staging;
  if (operand.counts) set_packed_blocks(operand, operand.type->size, staging);
  StagedSide staged(wait);
  Status status = staged.begin(StagedSide::Way::pack, operand, 1, to, staging);
  return status.ok() ? staged.finish() : status;
} catch (const std::bad_alloc&) {
  return {Code::memory, "no memory to copy an operand"};
}

void put_at(std::byte* place, Side* side) {
  side->buffer = place;
  side->place = {};
}

}  // namespace

Aside::Aside(const Exchange& call, const AsideMemory& scratch)
    : operand_(call.input),
      copy_(place_in_copy(call, scratch)),
      is_telling_(is_on_host(call.input) && is_on_host(call.output)),
      aside_(call) {
  if (aside_.output.type) put_at(scratch.result, &aside_.output);
  if (copy_) put_at(copy_, &aside_.input);
  aside_.others = {};
  aside_.in_place = stays_in_place(call);
}

Status Aside::prepare(CopyWait& wait) {
  aside_.call.input = aside_.call.output = {};
  if (!copy_) return {};
  if (is_on_host(operand_)) {
    std::memcpy(copy_, data_of(operand_), operand_.bytes());
    return {};
  }
  Status status = copy_from_device(operand_, copy_, wait);
  if (!status.ok()) std::memset(copy_, 0, operand_.bytes());
  return status;
}

}  // namespace sluice
