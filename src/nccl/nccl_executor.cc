// SPDX-License-Identifier: BSD-3-Clause
#include "src/nccl/nccl_executor.h"

namespace sluice {

Executor::State NcclExecutor::advance() {
  switch (group_.advance()) {
    case DeviceGroup::State::ready:
      return State::done;
    case DeviceGroup::State::running:
      return State::waiting;
    default:
      return State::failed;
  }
}

}  // namespace sluice
