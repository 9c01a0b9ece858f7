// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "src/memory/side.h"

namespace sluice {

// Where a rank's data lies.
struct Whereabouts {
  enum class Kind : uint8_t {
    elsewhere,  // on the host, on several devices, or not dense
    on_device,  // dense and aligned, and on one device
    unknown,
  };
  Kind kind = Kind::elsewhere;
  DevicePlace place;  // if on a device; its context is that of the data which has one
};
// Of the call's input and output; elsewhere if there are others. alignment: of addresses, in bytes.
Whereabouts find_data(const UnplacedCall& unplaced, size_t alignment);

// Whether they are on one device, and in one context. (Memory of pools, and virtual memory, is in
// none: every context of the device has it.)
bool are_together(const DevicePlace& one, const DevicePlace& other);

}  // namespace sluice
