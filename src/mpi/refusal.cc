// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/refusal.h"

#include <algorithm>
#include <mutex>

namespace sluice {
namespace {

// Whose handlers are called for errors without a communicator: the world's before MPI 4, since then
// that of MPI_COMM_SELF.
struct Handlers {
  MPI_Errhandler of_world, of_self;
};

constinit std::mutex quieting;
constinit int quiet = 0;  // how many want it so
constinit Handlers kept{};

// Types without data, so that nothing is moved where MPI has nothing against a probe.
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

bool is_uncommitted(const Datatype* type) {
  return type && !type->committed && !is_committed(type->handle);
}

}  // namespace

namespace {

// But not over a handler that another thread has set meanwhile.
void restore(MPI_Comm comm, MPI_Errhandler* handler) {
  const Real& mpi = real();
  MPI_Errhandler now;
  mpi.Comm_get_errhandler(comm, &now);
  if (now == MPI_ERRORS_RETURN) mpi.Comm_set_errhandler(comm, *handler);
  mpi.Errhandler_free(&now);
  mpi.Errhandler_free(handler);
}

}  // namespace

QuietErrors::QuietErrors() {
  const std::lock_guard lock(quieting);
  if (quiet++ > 0) return;
  const Real& mpi = real();
  mpi.Comm_get_errhandler(mpi.comm_world, &kept.of_world);
  mpi.Comm_get_errhandler(mpi.comm_self, &kept.of_self);
  mpi.Comm_set_errhandler(mpi.comm_world, MPI_ERRORS_RETURN);
  mpi.Comm_set_errhandler(mpi.comm_self, MPI_ERRORS_RETURN);
}

QuietErrors::~QuietErrors() {
  const std::lock_guard lock(quieting);
  if (--quiet > 0) return;
  restore(real().comm_world, &kept.of_world);
  restore(real().comm_self, &kept.of_self);
}

bool is_committed(MPI_Datatype type) {
  const QuietErrors errors;
  const char data[1] = {};
  return !real().Send(data, 1, type, MPI_PROC_NULL, 0, real().comm_self);
}

// (MPI_Op_commutative has an answer for any handle in MPICH.)
bool is_operation(MPI_Op op) {
  const QuietErrors errors;
  const char left[1] = {};
  char right[1] = {};
  return !real().Reduce_local(left, right, 0, MPI_INT, op);
}

bool is_refused(const Exchange& exchange, int (*attempt)(const Probe& probe)) {
  const Datatype *const in = exchange.input.type, *const out = exchange.output.type;
  const bool odd_in = is_uncommitted(in), odd_out = is_uncommitted(out);
  if (!exchange.aliased && !odd_in && !odd_out) return false;
  const Side& side = in ? exchange.input : exchange.output;
  const auto count = static_cast<int>(std::min<size_t>(side.total_elements(), 2));
  int memory[4] = {}, none = 0;
  int* const to = exchange.aliased ? memory : memory + 2;
  const void* const from = exchange.in_place ? MPI_IN_PLACE : memory;
  const EmptyTypes empty;
  const bool odd = odd_in || odd_out;
  const auto stand_in = [&](bool is_odd) {
    if (is_odd) return empty.uncommitted;
    return odd ? empty.committed : MPI_INT;
  };
  const MPI_Op op = odd && exchange.user_op ? *exchange.user_op : MPI_SUM;
  const Probe probe{from,
                    to,
                    memory,
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
                    real().comm_self};
  const QuietErrors errors;
  return attempt(probe) != MPI_SUCCESS;
}

}  // namespace sluice
