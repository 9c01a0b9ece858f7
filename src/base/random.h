// SPDX-License-Identifier: BSD-3-Clause
//
// Random numbers that nobody can guess, from the kernel.
#pragma once

#include <cstddef>

#include "src/base/status.h"

namespace sluice {

// Fills `bytes` bytes, at most 256. An error (unavailable) where the kernel gives none: a filter of
// system calls may forbid it.
Status draw_random(void* to, size_t bytes);

}  // namespace sluice
