// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/decider.h"

namespace sluice {

Team::Say Decider::say_of(const Call& call, bool shm, Carrier carrier) {
  if (selection_.is_forced(call.collective)) return Team::Say::no;
  const Choices::From& ruled = selection_.find(call, shm);
  const bool is_tried = may_try(ruled) && trials_.tries(call, carrier, *ruled.algorithm);
  return is_tried ? Team::Say::if_fast : Team::Say::if_named;
}

}  // namespace sluice
