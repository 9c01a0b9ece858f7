// SPDX-License-Identifier: BSD-3-Clause
//
// How a call waits for copies that run beside it, from and to memory of devices. Such a copy may
// come behind a kernel of the program that itself waits for another rank. So while a rank waits for
// a copy, MPI and messages must go on, and the wait must end if the call can't.
#pragma once

#include <functional>
#include <string>

#include "src/engine/wait_limits.h"
#include "src/engine/waiter.h"

namespace sluice {

class CopyWait {
 public:
  using IsDone = std::function<bool()>;

  virtual ~CopyWait() = default;
  // Returns when `is_done` does. If it fails, the copy may still run. what: "a copy from CUDA
  // device 0".
  virtual Status wait_for_copy(const IsDone& is_done, const std::string& what) = 0;
};

// For calls by MPI: no team tells this rank of another rank's failure.
class LoneWait final : public CopyWait {
 public:
  LoneWait(const ProgressMpi& progress_mpi, const Knobs& knobs,
           const Oversubscription& oversubscription)
      : waiter_(nullptr, progress_mpi, knobs.spin, oversubscription), limits_(knobs) {}
  Status wait_for_copy(const IsDone& is_done, const std::string& what) override;

 private:
  Waiter waiter_;
  WaitLimits limits_;
};

}  // namespace sluice
