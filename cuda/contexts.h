// SPDX-License-Identifier: BSD-3-Clause
//
// In which context to copy from and to a place: that of the memory. Memory that belongs to none
// (pools, virtual memory management) is copied in its device's primary context: the current one may
// be a green context, which no other thread may use at the same time.
#pragma once

#include "cuda/driver.h"
#include "cuda/module.h"

namespace sluice::cuda {

// Null, with the reason, if there is none.
CUcontext find_context(const SluiceCudaPlace& place, char* why);

// The primary context of a device, which is retained until release_primaries. If the program has
// reset it, it is made anew. Null, with the reason, if the driver refuses.
CUcontext primary_context(int device, char* why);
// Whether the primary context exists: a reset or the last release has not destroyed it.
bool is_active(int device);
void release_primaries();

// The same, retained for the caller alone, until it releases it.
CUcontext retain_primary(int device, char* why);
void release_primary(int device);

}  // namespace sluice::cuda
