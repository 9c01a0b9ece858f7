// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/error_probe.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "src/mpi/thread_state.h"

namespace sluice {
namespace {

// The handlers that MPI calls for errors without a communicator: that of MPI_COMM_WORLD before MPI
// 4, that of MPI_COMM_SELF since.
struct Handlers {
  MPI_Errhandler of_world, of_self;
};

constinit std::mutex quieting;
constinit int quiet = 0;  // number of QuietErrors that exist
constinit Handlers kept{};
constinit MPI_Errhandler ignoring{};  // made when first needed
constinit bool has_ignoring = false;

// The communicator of this process alone on which probes are made.
constinit std::atomic<bool> has_own{false};
constinit MPI_Comm own{};
constinit std::mutex asking;  // one thread at a time in its collectives

// MPICH 5 returns MPI_SUCCESS once a handler has returned, so the ignoring handler notes the error.
constinit thread_local bool is_noted = false;

void ignore(MPI_Comm*, int*, ...) { is_noted = true; }

// Whether a call failed that this thread made with a Quiet or QuietErrors.
bool has_failed(int result) { return std::exchange(is_noted, false) || result != MPI_SUCCESS; }

// Restores a handler, unless another thread has set one meanwhile.
void restore(MPI_Comm comm, MPI_Errhandler* handler) {
  const Real& mpi = real();
  MPI_Errhandler now;
  mpi.Comm_get_errhandler(comm, &now);
  if (now == ignoring) mpi.Comm_set_errhandler(comm, *handler);
  mpi.Errhandler_free(&now);
  mpi.Errhandler_free(handler);
}

// Gives a communicator of this process alone on which MPI returns errors.
class Quiet {
 public:
  // about_world: MPI may report the error on MPI_COMM_WORLD, whatever the communicator of the call
  // (Open MPI does so for input and output in the same memory). If several threads may be in MPI,
  // the program's handler of MPI_COMM_WORLD is called then.
  explicit Quiet(bool about_world = false) {
    is_noted = false;
    const bool put_aside = about_world && !threads_call_mpi.load(std::memory_order_relaxed);
    if (put_aside || !has_own.load(std::memory_order_acquire)) errors_.emplace();
  }
  MPI_Comm comm() const { return errors_ ? real().comm_self : own; }

 private:
  const std::lock_guard<std::mutex> turn_{asking};
  std::optional<QuietErrors> errors_;
};

// Types without data, so that a probe which MPI accepts moves nothing.
struct EmptyTypes {
  EmptyTypes() {
    real().Type_contiguous(0, MPI_BYTE, &committed);
    real().Type_commit(&committed);
    real().Type_contiguous(0, MPI_BYTE, &uncommitted);
  }
  ~EmptyTypes() {
    real().Type_free(&committed);
    real().Type_free(&uncommitted);
  }
  EmptyTypes(const EmptyTypes&) = delete;
  EmptyTypes& operator=(const EmptyTypes&) = delete;

  MPI_Datatype committed{}, uncommitted{};
};

// Whether MPI looks at buffers. (Of one process, no data is touched.)
bool checks_buffers() {
  const Quiet quiet_errors;
  return has_failed(real().Bcast(nullptr, 1, MPI_INT, 0, quiet_errors.comm()));
}

bool is_uncommitted(const Datatype* type) {
  return type && !type->committed && !is_committed(type->handle);
}

}  // namespace

QuietErrors::QuietErrors() {
  is_noted = false;
  const std::lock_guard lock(quieting);
  if (quiet++ > 0) return;
  const Real& mpi = real();
  if (!has_ignoring) has_ignoring = !mpi.Comm_create_errhandler(ignore, &ignoring);
  mpi.Comm_get_errhandler(mpi.comm_world, &kept.of_world);
  mpi.Comm_get_errhandler(mpi.comm_self, &kept.of_self);
  mpi.Comm_set_errhandler(mpi.comm_world, ignoring);
  mpi.Comm_set_errhandler(mpi.comm_self, ignoring);
}

QuietErrors::~QuietErrors() {
  const std::lock_guard lock(quieting);
  if (--quiet > 0) return;
  restore(real().comm_world, &kept.of_world);
  restore(real().comm_self, &kept.of_self);
}

// (MPI_Comm_dup would call the callbacks of the program's attributes.)
void begin_probes() {
  if (has_own) return;
  const QuietErrors errors;
  if (has_failed(real().Comm_split(real().comm_self, 0, 0, &own))) return;
  real().Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  has_own = true;
}

void end_probes() {
  if (has_own.exchange(false)) real().Comm_free(&own);
  if (std::exchange(has_ignoring, false)) real().Errhandler_free(&ignoring);
}

std::optional<MPI_Comm> probing_communicator() {
  if (!has_own.load(std::memory_order_acquire)) return {};
  return own;
}

bool is_communicator(MPI_Comm handle) {
#ifdef SLUICE_OPEN_MPI
  // (It takes MPI_COMM_NULL for one.)
  return handle != real().comm_null && real().Comm_c2f(handle) != -1;
#else
  // MPICH reports a handle of another kind to MPI_COMM_WORLD's handler, whatever the function.
#ifdef SLUICE_MPICH
  // So the kind is checked here.
  constexpr unsigned kind = 0x3c000000, place = 0xc0000000;
  const auto bits = static_cast<unsigned>(handle), self = static_cast<unsigned>(real().comm_self);
  if ((bits & kind) != (self & kind) || (bits & place) == 0) return false;
  const Quiet quiet_errors;
#else
  if (handle == MPI_Comm{} || handle == real().comm_null) return false;
  const Quiet quiet_errors(true);
#endif
  int relation = 0;
  return !has_failed(real().Comm_compare(quiet_errors.comm(), handle, &relation));
#endif
}

bool is_committed(MPI_Datatype type) {
  const Quiet quiet_errors;
  const char data[1] = {};
  return !has_failed(real().Send(data, 1, type, MPI_PROC_NULL, 0, quiet_errors.comm()));
}

// If the type is not committed the program is in error, so the slower way is good enough.
bool is_datatype(MPI_Datatype type, bool* committed) {
  *committed = type != real().datatype_null && is_committed(type);
  if (*committed || type == real().datatype_null) return *committed;
  const QuietErrors errors;
  MPI_Count size = 0;
  return !has_failed(real().Type_size_x(type, &size));
}

// (MPICH's MPI_Op_commutative accepts any handle.)
bool is_operation(MPI_Op op) {
  const Quiet quiet_errors;
  const char left[1] = {};
  char right[1] = {};
  return !has_failed(real().Allreduce(left, right, 0, MPI_INT, op, quiet_errors.comm()));
}

bool is_error_of_mpi(const Exchange& exchange, int (*attempt)(const Probe& probe)) {
  using Fault = Exchange::Fault;
  if (exchange.fault == Fault::null && checks_buffers()) return true;
  const bool misplaced = exchange.fault == Fault::in_place;
  const Datatype *const in = datatype_of(exchange.input), *const out = datatype_of(exchange.output);
  const bool odd_in = is_uncommitted(in), odd_out = is_uncommitted(out);
  if (!exchange.aliased && !misplaced && !odd_in && !odd_out) return false;
  const Side& side = in && !(misplaced && out) ? exchange.input : exchange.output;
  const auto count = static_cast<int>(std::min<size_t>(side.total_elements(), 2));
  int memory[4] = {}, none = 0;
  // (The attempt's one process is the root, which may have MPI_IN_PLACE as the other buffer.)
  const bool swaps = scatters(exchange.call) && (misplaced || exchange.in_place);
  const bool has_no_input = swaps ? misplaced : exchange.in_place;
  const bool has_no_output = swaps ? exchange.in_place : misplaced;
  void* const to = has_no_output ? MPI_IN_PLACE : memory + (exchange.aliased ? 0 : 2);
  const void* const from = has_no_input ? MPI_IN_PLACE : memory;
  const EmptyTypes empty;
  const bool odd = odd_in || odd_out;
  const auto stand_in = [&](bool is_odd) {
    if (is_odd) return empty.uncommitted;
    return odd ? empty.committed : MPI_INT;
  };
  const MPI_Op op = odd && exchange.user_op ? *exchange.user_op : MPI_SUM;
  const Quiet quiet_errors(true);
  const Probe probe{from,
                    to,
                    misplaced ? to : memory,
                    count,
                    count,
                    count,
                    &count,
                    &count,
                    &none,
                    &none,
                    stand_in(in ? odd_in : odd_out),
                    stand_in(odd_in),
                    stand_in(odd_out),
                    op,
                    0,
                    quiet_errors.comm()};
  return has_failed(attempt(probe));
}

}  // namespace sluice
