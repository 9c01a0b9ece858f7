// SPDX-License-Identifier: BSD-3-Clause
//
// In which context to copy from and to a place: that of the memory, else the current one if it is
// of this device, else the device's primary context.
#pragma once

#include "cuda/driver.h"
#include "cuda/module.h"

namespace sluice::cuda {

struct Context {
  CUcontext handle = nullptr;
  int retained = -1;  // device whose primary context is retained; -1: none
};
// To be released when no copies are made any more.
bool find_context(const SluiceCudaPlace& place, Context* context, char* why);
void release(int retained);

// A primary context that exists only because Sluice needed it is kept until this is called: to make
// one takes longer than a call.
void release_kept();

}  // namespace sluice::cuda
