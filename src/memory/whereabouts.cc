// SPDX-License-Identifier: BSD-3-Clause
#include "src/memory/whereabouts.h"

#include "src/memory/placement.h"

namespace sluice {
namespace {

// The side whose blocks MPI allows to differ; nullptr if there is none.
const Side* side_of_blocks(const UnplacedCall& unplaced) {
  switch (unplaced.call.collective) {
    case Collective::allgatherv:
      return &unplaced.output;
    case Collective::reduce_scatter:
      return &unplaced.input;
    default:
      return nullptr;
  }
}

// Whether a device can load its elements. (Blocks are dense, so one address tells.)
bool is_aligned(const Side& side, size_t bytes) {
  return reinterpret_cast<uintptr_t>(offset_by(side.buffer, side.type->start)) % bytes == 0;
}

bool has_data(const Side& side) { return side.type && side.bytes() > 0; }

}  // namespace

// (FNV-1a, by words.)
uint32_t digest_of_blocks(const UnplacedCall& unplaced) {
  const Side* const side = side_of_blocks(unplaced);
  if (!side) return 0;
  uint64_t digest = 0xcbf29ce484222325;
  for (uint32_t i = 0; i < side->blocks; ++i) {
    digest = (digest ^ (side->elements(i) * side->type->size)) * 0x100000001b3;
  }
  return static_cast<uint32_t>(digest ^ digest >> 32);
}

bool are_together(const DevicePlace& one, const DevicePlace& other) {
  return one.device == other.device &&
         (!one.context || !other.context || one.context == other.context);
}

Whereabouts find_data(const UnplacedCall& unplaced, size_t alignment) {
  using Kind = Whereabouts::Kind;
  Whereabouts found;
  if (!unplaced.others.empty()) return found;
  for (const Side* side : {&unplaced.output, &unplaced.input}) {
    if (!has_data(*side)) continue;
    if (side->place.device == DevicePlace::unknown) return {Kind::unknown, {}};
    const bool is_first = found.kind == Kind::elsewhere;
    const bool is_there =
        side->place.device >= 0 && (is_first || are_together(found.place, side->place)) &&
        has_dense_blocks(*side, unplaced.call.reduction.kernel) && is_aligned(*side, alignment);
    if (!is_there) return {Kind::elsewhere, {}};
    if (is_first || !found.place.context) found.place = side->place;
    found.kind = Kind::on_device;
  }
  return found;
}

}  // namespace sluice
