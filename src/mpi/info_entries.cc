// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI functions that give hints to communicators, and MPI_Comm_get_info. Each calls MPI first;
// then Sluice stores its own hints, since MPI libraries drop those that they do not know. The
// functions that give hints are collective, and the ranks' hints are compared at team set-up.
// (Hints that come later end the team, so all ranks must give some, but may give different ones.)
#include <new>

#include "src/base/log.h"
#include "src/mpi/communicators.h"
#include "src/mpi/functions.h"
#include "src/mpi/info.h"
#include "src/mpi/runtime.h"

namespace sluice {
namespace {

bool is_for_sluice(int result) {
  return result == MPI_SUCCESS && !all_pass.load(std::memory_order_relaxed) && !is_switched_off() &&
         !this_thread.inside;
}

void remember(Communicator* communicator, const Hints& hints) try {
  communicator->give_hints(hints);
} catch (const std::bad_alloc&) {
  log(Level::warning, "no memory for a communicator's hints");
}

// Called on all ranks of a communicator after MPI has made it. (Not in MPI_Comm_idup_with_info: its
// communicator may not be used before the request completes.)
int made(int result, MPI_Comm* made, MPI_Info info) try {
  if (!is_for_sluice(result) || *made == real().comm_null) return result;
  const Hints hints = read_hints(info);
  Communicator* const communicator = hints.empty() ? nullptr : look_up_communicator(*made);
  if (communicator) remember(communicator, hints);
  return result;
} catch (const std::bad_alloc&) {
  log(Level::warning, "no memory for a communicator's hints");
  return result;
}

// Called after MPI_Comm_set_info. (An info without a hint for Sluice is ignored: libraries set such
// an info on one rank alone.)
int set(int result, MPI_Comm comm, MPI_Info info) try {
  if (!is_for_sluice(result)) return result;
  const Hints hints = read_hints(info);
  Communicator* const communicator = hints.empty() ? nullptr : look_up_communicator(comm);
  if (communicator) remember(communicator, hints);
  return result;
} catch (const std::bad_alloc&) {
  log(Level::warning, "no memory for a communicator's hints");
  return result;
}

int got(int result, MPI_Comm comm, const MPI_Info* info) try {
  if (!is_for_sluice(result)) return result;
  const Communicator* const communicator = find_existing_communicator(comm);
  write_hints(communicator ? communicator->hints() : Hints(), *info);
  return result;
} catch (const std::bad_alloc&) {
  return result;
}

// MPI calls the error handler that the communicator would have got; so a communicator gets it.
int cannot_create_from_group(MPI_Errhandler errors, MPI_Comm* made) {
  log(Level::error, "MPI_Comm_create_from_group: this MPI library lacks it");
  const int error = MPI_ERR_UNSUPPORTED_OPERATION;
  int is_initialized = 0;
  MPI_Comm own;
  real().Initialized(&is_initialized);
  if (made) *made = real().comm_null;
  if (!is_initialized || real().Comm_split(real().comm_self, 0, 0, &own)) return error;
  if (real().Comm_set_errhandler(own, errors) == MPI_SUCCESS)
    real().Comm_call_errhandler(own, error);
  real().Comm_free(&own);
  return error;
}

}  // namespace
}  // namespace sluice

extern "C" {

int PMPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  return sluice::set(sluice::real().Comm_set_info(comm, info), comm, info);
}

int PMPI_Comm_get_info(MPI_Comm comm, MPI_Info* info) {
  return sluice::got(sluice::real().Comm_get_info(comm, info), comm, info);
}

int PMPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  return sluice::made(sluice::real().Comm_dup_with_info(comm, info, made), made, info);
}

int PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  return sluice::made(sluice::real().Comm_split_type(comm, type, key, info, made), made, info);
}

int PMPI_Comm_create_from_group(MPI_Group group, const char* tag, MPI_Info info,
                                MPI_Errhandler errors, MPI_Comm* made) {
  const auto create = sluice::real().Comm_create_from_group;
  if (!create) return sluice::cannot_create_from_group(errors, made);
  return sluice::made(create(group, tag, info, errors, made), made, info);
}

}  // extern "C"
