// SPDX-License-Identifier: BSD-3-Clause
//
// A call that a program has made, from its arguments until its function returns:
//
//   described -> done                  Sluice has done it, or it has failed
//             -> left_to_mpi -> done   MPI does it, with the program's arguments
//             -> by_mpi -> done        MPI does it, or a part of it, because of a trial
//
// It lives in the function that the program has called. Several can exist at once, also on one
// communicator: MPI's error handlers and the program's own operations may make other calls.
#pragma once

#include <span>
#include <vector>

#include "src/mpi/call_by_mpi.h"
#include "src/mpi/call_cache.h"
#include "src/mpi/describe.h"
#include "src/mpi/error_probe.h"
#include "src/mpi/runtime.h"

namespace sluice {

class Communicator;

// A row of the table, or a function that makes its calls.
struct Row {
  const char* name;  // "MPI_Bcast"
  Function function;
  bool (*describe)(const Arguments& arguments, Position position, Exchange* exchange);
  int (*attempt)(const Probe& probe);
  int (*call)(const Arguments& arguments);  // MPI's own function; counts are ints
  // That of the name which the program has called: MPI_X or MPI_X_c.
  int (*call_alike)(const Arguments& arguments);
};

// Further buffers of a call, of the output's type and count (UnplacedCall::others).
struct FurtherBuffers {
  std::span<void* const> buffers;
  std::vector<Side> sides;

  // Makes them part of the call. May throw std::bad_alloc.
  void attach(Exchange* exchange);
};

// Whether this call bypasses Sluice.
// If calls are in flight, they are driven first: a program may wait for them by calls that are done
// at once, and so never let MPI progress.
inline bool is_passing() {
  return this_thread.inside ||
         (errands.load(std::memory_order_relaxed) != 0 && passes_after_errand());
}

class PreparedCall {
 public:
  enum class State : uint8_t { described, left_to_mpi, by_mpi, done };

  // All must outlive this. further: nullptr if there are none.
  PreparedCall(const Row& row, const Arguments& arguments, FurtherBuffers* further = nullptr)
      : row_(row), arguments_(arguments), further_(further) {}
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;

  // Does Sluice's part. Blocks. Who does the call is equal on all ranks.
  State start();
  // Does what is left, by MPI. Returns what the function returns.
  int finish();

  // For the communicator.
  const Row& row() const { return row_; }
  const Arguments& arguments() const { return arguments_; }
  // nullptr: this rank had no memory to describe the call.
  Exchange* exchange() { return exchange_; }
  Way& way() { return handed_.way; }
  State by_mpi(bool may_be_kept) {
    handed_.may_be_kept = may_be_kept;
    return State::by_mpi;
  }
  State done(int result) {
    result_ = result;
    return State::done;
  }

 private:
  State try_to_carry();
  bool find_communicator();
  bool describe();
  State fail_without_communicator();
  int finish_by_mpi();
  int finish_left();

  const Row& row_;
  const Arguments& arguments_;
  FurtherBuffers* const further_;
  Communicator* communicator_ = nullptr;
  Exchange described_;
  Exchange* exchange_ = &described_;
  HandedOver handed_;
  State state_ = State::described;
  int result_;  // once it is done
};

// Makes a call, by whoever is to do it; false: MPI is, with the program's own arguments.
bool make_call(const Row& row, const Arguments& arguments, int* result);

}  // namespace sluice
