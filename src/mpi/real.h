// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI library underneath. Sluice reaches it only through pointers that are looked up at the
// first call, never by name. A name would bind to Sluice itself, which defines PMPI_X as well as
// MPI_X. Or it would keep Sluice from being loaded into a process without MPI, which preloading
// reaches too. (This is the only header of the library that includes <mpi.h>: our own one in
// src/mpi/abi/ for a representation of handles, not an MPI library's.)
#pragma once

#include <mpi.h>

#include <string>

#include "src/chooser/module.h"
#include "src/mpi/functions.h"

namespace sluice {

// Where symbols are looked up from now on (sluice_module).
void use_look_up(const SluiceLookUp* look_up);

// The address of a data symbol of MPI; nullptr if there is none. Takes about a microsecond.
void* find_data(const char* symbol);

// The MPI functions that Sluice itself calls.
#define SLUICE_USED(ROW)                                                                           \
  SLUICE_EACH(ROW, Add_error_class, Add_error_code, Add_error_string, Comm_call_errhandler,        \
              Comm_create_errhandler, Comm_create_keyval, Comm_delete_attr, Comm_disconnect,       \
              Comm_dup_with_info, Comm_free, Comm_get_errhandler, Comm_get_info, Comm_get_name,    \
              Comm_get_parent, Comm_group, Comm_rank, Comm_set_attr, Comm_set_errhandler,          \
              Comm_set_info, Comm_size, Comm_split, Comm_split_type, Comm_test_inter,              \
              Errhandler_free, Finalize, Finalized, Grequest_complete, Grequest_start, Group_free, \
              Group_translate_ranks, Info_delete, Info_get, Info_get_nkeys, Info_get_nthkey,       \
              Info_set, Init, Init_thread, Initialized, Isend, Op_commutative, Op_create, Op_free, \
              Pack, Query_thread, Recv_init, Reduce_local, Request_free, Request_get_status, Send, \
              Start, Startall, Test, Testall, Testany, Testsome, Type_commit, Type_contiguous,     \
              Type_delete_attr, Type_create_keyval, Type_free, Type_get_attr, Type_get_contents,   \
              Type_get_envelope, Type_get_extent_x, Type_get_true_extent_x, Type_set_attr,         \
              Type_set_name, Type_size_x, Wait, Waitall, Waitany, Waitsome)
// And those that MPI libraries before MPI 4 lack: null there.
#define SLUICE_USED_OF_MPI_4(ROW)                                                \
  SLUICE_EACH(ROW, Comm_create_from_group, Info_get_string, Type_get_contents_c, \
              Type_get_envelope_c)
// And those that it calls in one kind of MPI only.
#ifdef SLUICE_OPEN_MPI
#define SLUICE_USED_OF_ONE(ROW) ROW(Comm_c2f)
#else
#define SLUICE_USED_OF_ONE(ROW) ROW(Comm_compare)
#endif

struct Real {
#define SLUICE_POINTER(function, ...) decltype(&PMPI_##function) function = nullptr;
#define SLUICE_LARGE_POINTER(function, ...) SLUICE_POINTER(function##_c)
#define SLUICE_I_POINTER(function, ...) SLUICE_POINTER_OF(SLUICE_NONBLOCKING(function))
#define SLUICE_LARGE_I_POINTER(function, ...) SLUICE_LARGE_POINTER_OF(SLUICE_NONBLOCKING(function))
#define SLUICE_INIT_POINTER(function, ...) SLUICE_POINTER_OF(SLUICE_PERSISTENT(function))
#define SLUICE_LARGE_INIT_POINTER(function, ...) \
  SLUICE_LARGE_POINTER_OF(SLUICE_PERSISTENT(function))
#define SLUICE_POINTER_OF(function) SLUICE_POINTER(function)
#define SLUICE_LARGE_POINTER_OF(function) SLUICE_LARGE_POINTER(function)
  SLUICE_COLLECTIVES(SLUICE_POINTER)
  SLUICE_COLLECTIVES(SLUICE_I_POINTER)
  // (With libsluice.so's stand-ins, where the MPI library lacks them: SluiceLookUp.)
  SLUICE_COUNTING_COLLECTIVES(SLUICE_LARGE_POINTER)
  SLUICE_COUNTING_COLLECTIVES(SLUICE_LARGE_I_POINTER)
  // Persistent ones are of MPI 4: null where it lacks them, but there are stand-ins in any case.
  SLUICE_COLLECTIVES(SLUICE_INIT_POINTER)
  SLUICE_COUNTING_COLLECTIVES(SLUICE_LARGE_INIT_POINTER)
  SLUICE_USED(SLUICE_POINTER)
  SLUICE_USED_OF_MPI_4(SLUICE_POINTER)
  SLUICE_USED_OF_ONE(SLUICE_POINTER)
#undef SLUICE_LARGE_POINTER_OF
#undef SLUICE_POINTER_OF
#undef SLUICE_LARGE_INIT_POINTER
#undef SLUICE_INIT_POINTER
#undef SLUICE_LARGE_I_POINTER
#undef SLUICE_I_POINTER
#undef SLUICE_LARGE_POINTER
#undef SLUICE_POINTER
  // Predefined handles that calls need often.
  MPI_Comm comm_null, comm_self, comm_world;
  MPI_Datatype datatype_null;
  MPI_Errhandler errors_return;
  MPI_Info info_null;
  MPI_Op op_null;
  const char* missing = nullptr;  // a function that Sluice needs and MPI lacks; nullptr: none
};

// Looked up at the first use, by any thread. No other part of Sluice runs if one is missing.
const Real& real();

// Room for the texts that MPI libraries write: the most that any has. (Open MPI's limits are set
// when it is configured.)
constexpr int object_name_room = 257;
constexpr int info_key_room = 257;
constexpr int info_value_room = 1025;

// Of that library: "Open MPI v4.1.4", "MPICH Version: 4.0.2".
std::string library_version();

}  // namespace sluice
