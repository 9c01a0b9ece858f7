// SPDX-License-Identifier: BSD-3-Clause
//
// The module's kernels that the driver has loaded. An image (images.h) is loaded into a context
// when one of its kernels is first launched there. The driver then compiles it, and keeps the
// result in its own cache on disk. When the program destroys or resets a context, its kernels are
// forgotten and their handles are not used again.
#pragma once

#include "cuda/contexts.h"
#include "cuda/driver.h"
#include "cuda/images.h"
#include "cuda/streams.h"

namespace sluice::cuda {

struct Kernel {
  const char* name;
  Image image;
};

// Whether kernels of an image can be launched in the stream; loads it. The context must be current.
bool load(const SluiceCudaStream& stream, Image image, char* why);

// Launches a kernel in the stream, for so many threads or fewer, which share the work. arguments:
// its only parameter. The stream's context must be current. False, with the reason, if the kernel
// can't be loaded or launched. May wait until the driver has compiled it.
bool launch(const SluiceCudaStream& stream, const Kernel& kernel, const void* arguments,
            size_t threads, char* why);

// Whether the driver has not yet refused kernels as such (it is too old, or has no compiler).
bool are_kernels_usable();

// Unloads what is loaded in contexts that are there.
void unload_kernels();

}  // namespace sluice::cuda
