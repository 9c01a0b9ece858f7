// SPDX-License-Identifier: BSD-3-Clause
#include "src/memory/whereabouts.h"

#include "src/memory/placement.h"

namespace sluice {
namespace {

// Whether a device can load its elements. (Blocks are dense, so one address tells.)
bool is_aligned(const Side& side, size_t bytes) {
  return reinterpret_cast<uintptr_t>(offset_by(side.buffer, side.type->start)) % bytes == 0;
}

bool has_data(const Side& side) { return side.type && side.bytes() > 0; }

}  // namespace

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
