// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI library underneath, as Sluice reaches it: through pointers that are looked up at the
// first call, never through a name. A name would bind to Sluice itself, which defines PMPI_X as
// well as MPI_X, or keep Sluice from being loaded into a process without MPI, which preloading
// reaches too. (The only header of the library that includes <mpi.h>.)
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include "src/mpi/functions.h"

#ifdef OMPI_PREDEFINED_GLOBAL
// Open MPI's predefined handles are addresses of its data: those are looked up, too. (MPICH's are
// numbers.)
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) (static_cast<type>(::sluice::find_data(#global)))
#endif

namespace sluice {

// The address of a data symbol of MPI; nullptr if there is none. Takes about a microsecond.
void* find_data(const char* symbol);

// ROW(function): what Sluice itself asks of MPI.
#if MPI_VERSION >= 4
#define SLUICE_USED_OF_MPI_4(ROW) ROW(Type_get_envelope_c)
#else
#define SLUICE_USED_OF_MPI_4(ROW)
#endif
#define SLUICE_USED(ROW)                                                                          \
  ROW(Add_error_code)                                                                             \
  ROW(Add_error_string)                                                                           \
  ROW(Comm_call_errhandler) ROW(Comm_create_keyval) ROW(Comm_get_attr) ROW(Comm_get_name)         \
      ROW(Comm_rank) ROW(Comm_set_attr) ROW(Comm_size) ROW(Comm_test_inter) ROW(Finalize)         \
          ROW(Finalized) ROW(Grequest_complete) ROW(Grequest_start) ROW(Iallgather)               \
              ROW(Initialized) ROW(Pack) ROW(Query_thread) ROW(Test) ROW(Type_create_keyval)      \
                  ROW(Type_free) ROW(Type_get_attr) ROW(Type_get_contents) ROW(Type_get_envelope) \
                      ROW(Type_get_extent_x) ROW(Type_get_true_extent_x) ROW(Type_set_attr)       \
                          ROW(Type_size_x) ROW(Unpack) ROW(Wait) SLUICE_USED_OF_MPI_4(ROW)

struct Real {
#define SLUICE_POINTER(function, ...) decltype(&PMPI_##function) function = nullptr;
  SLUICE_COLLECTIVES(SLUICE_POINTER)
  SLUICE_USED(SLUICE_POINTER)
#undef SLUICE_POINTER
  // Predefined handles that are needed on every way.
  MPI_Comm comm_null, comm_self, comm_world;
  MPI_Datatype datatype_null;
  MPI_Op op_null;
};

// Looked up at the first use, by whichever thread. Ends the process if there is no MPI library: an
// MPI function was called, and there is none to answer.
const Real& real();

}  // namespace sluice
