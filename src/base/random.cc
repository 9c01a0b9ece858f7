// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace sluice {

Status draw_random(void* to, size_t bytes) {
  ssize_t drawn;
  do {
    drawn = getrandom(to, bytes, 0);
  } while (drawn < 0 && errno == EINTR);
  if (drawn == static_cast<ssize_t>(bytes)) return {};
  return {Code::unavailable,
          std::string("the kernel gives no random numbers (getrandom): ") + strerror(errno)};
}

}  // namespace sluice
