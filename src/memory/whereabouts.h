// SPDX-License-Identifier: BSD-3-Clause
//
// Where a call's data lies. Ranks must know that before NCCL (src/nccl) or CUDA IPC (src/ipc)
// carries the call, or a device does the engine's work.
#pragma once

#include <cstdint>

#include "src/memory/side.h"

namespace sluice {

// A digest of the sizes of a call's blocks, which MPI makes equal on all ranks; 0 if they can't
// differ from each other.
uint32_t digest_of_blocks(const UnplacedCall& unplaced);

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
