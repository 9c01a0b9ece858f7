// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/random.h"

#include <sys/random.h>

#include <cerrno>

#include "src/base/system_call.h"

namespace sluice {

Status draw_random(void* to, size_t bytes) {
  const ssize_t drawn = system_call([&] { return getrandom(to, bytes, 0); });
  if (drawn == static_cast<ssize_t>(bytes)) return {};
  const int error = drawn < 0 ? static_cast<int>(-drawn) : EIO;
  return system_error("the kernel gives no random numbers (getrandom)", error);
}

}  // namespace sluice
