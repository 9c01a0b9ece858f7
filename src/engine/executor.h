// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a call that does not end at once. There is one executor class for each way to run calls. An
// executor runs one call at a time, and keeps its memory for the next. It never blocks: the team
// advances it, drives the endpoint, and checks whether the wait must end. (Shared-memory algorithms
// block, see shm_executor.h.)
//
// Ways outside the engine (src/nccl) implement it too.
//
// The model is ucc's ucc_coll_task, and Aluminum's state with its `step`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/engine/call.h"
#include "src/engine/execution.h"

namespace sluice {

class Executor {
 public:
  using State = Execution::State;
  struct Failure {
    Status status;
    std::optional<Rank> peer;  // the rank concerned; none: this one, or the message names it
  };

  virtual ~Executor() = default;

  // Begins a call. All that can fail for lack of memory fails here, before the first send; may
  // throw std::bad_alloc. After a failure, `cancel`. The memory that `call` points to must stay
  // valid until the call is done or cancelled. number: of the call; ranks start the calls of a team
  // in one order.
  virtual Status start(const Algorithm& algorithm, const Call& call, uint32_t number) = 0;
  // May throw std::bad_alloc.
  virtual State advance() = 0;
  // Why it failed.
  virtual Failure failure() const = 0;
  // Only when the team breaks, because it withdraws all messages of the team's channels. Once
  // `is_quiet`, no memory of the call is touched.
  virtual void cancel() = 0;
  // After `cancel`: whether it has had its effect. The team asks again and again, for some seconds;
  // other ranks have been told by then.
  virtual bool is_quiet() { return true; }
  // What the call waits for: "ranks 1-3".
  virtual std::string awaited() const = 0;
  // Whether a call fails by itself if a process that it waits for has ended.
  virtual bool notices_death() const { return true; }
  // Between calls: frees memory that only large calls need.
  virtual void trim() = 0;
};

}  // namespace sluice
