// SPDX-License-Identifier: BSD-3-Clause
//
// What kind of memory an address is.
#pragma once

#include "cuda/driver.h"
#include "cuda/module.h"

namespace sluice::cuda {

// What the driver knows of an address; all zero if it does not know the address.
struct Attributes {
  CUmemorytype type = 0;
  unsigned managed = 0;
  CUcontext context = nullptr;  // in which it was allocated or registered (then perhaps gone)
  int device = -1;              // ordinal; negative: of none
  unsigned sync_memops = 0;
};
CUresult ask(const void* address, Attributes* attributes);

// SluiceCuda::find.
int find(const void* address, SluiceCudaPlace* place, char* why);

}  // namespace sluice::cuda
