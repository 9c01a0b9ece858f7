// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/copy_wait.h"

namespace sluice {

Status LoneWait::wait_for_copy(const IsDone& is_done, const std::string& what) {
  waiter_.begin();
  while (!is_done()) {
    waiter_.idle();
    Status status = limits_.check(
        waiter_.waited(), [&] { return what; }, [] { return std::string("a call that MPI does"); });
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace sluice
