// SPDX-License-Identifier: BSD-3-Clause
//
// Unpredictable random numbers from the kernel.
#pragma once

#include <cstddef>

#include "src/base/status.h"

namespace sluice {

// Fills `bytes` bytes, at most 256. Returns `unavailable` if getrandom fails, for example because a
// seccomp filter forbids it.
Status draw_random(void* to, size_t bytes);

}  // namespace sluice
