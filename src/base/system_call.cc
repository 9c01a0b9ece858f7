// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/system_call.h"

#include <cstring>

namespace sluice {

std::string error_text(int error) {
  char buffer[128] = "";
  return strerror_r(error, buffer, sizeof(buffer));
}

Status system_error(const std::string& what, int error) {
  return {Code::unavailable, what + ": " + error_text(error), error};
}

}  // namespace sluice
