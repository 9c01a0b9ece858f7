// SPDX-License-Identifier: BSD-3-Clause
//
// The public interface of libsluice, for C and C++. A program needs none of it: Sluice is preloaded
// or linked and the program's MPI calls arrive there by themselves. It serves to ask whether Sluice
// is there, and which, and what it did, and has datatypes that MPI lacks.
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0
#define SLUICE_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

// The version of the library that is loaded, as SLUICE_VERSION writes it: a constant string. May be
// called at any time, before MPI_Init too. A program that must also run without Sluice looks it up:
// dlsym(RTLD_DEFAULT, "sluice_version") is null where Sluice is not active.
__attribute__((visibility("default"))) const char* sluice_version(void);

// Declared where <mpi.h> was included before.
#ifdef MPI_VERSION

// Datatypes of 16-bit floating-point numbers, which MPI has none of: IEEE half precision, and
// bfloat16, the upper half of a float. Each is made at the first call, between MPI_Init and
// MPI_Finalize, and belongs to Sluice: do not free it. It serves in every MPI call as a datatype of
// two bytes, and in the reductions that Sluice stands in for with MPI_SUM, MPI_PROD, MPI_MIN and
// MPI_MAX as well: computed in float, and rounded once to the nearest, ties to even. Local; any
// thread may call it where MPI lets threads. Returns MPI_SUCCESS, or an error code.
__attribute__((visibility("default"))) int sluice_type_float16(MPI_Datatype* type);
__attribute__((visibility("default"))) int sluice_type_bfloat16(MPI_Datatype* type);

// The algorithm that carried this process's last collective on a communicator, by its name in
// `sluice info`: a constant string; "mpi" where MPI carried it, or there was none yet. Local;
// between MPI_Init and MPI_Finalize, not while another thread is in a collective on the
// communicator.
__attribute__((visibility("default"))) const char* sluice_last_algorithm(MPI_Comm comm);

#endif

#ifdef __cplusplus
}
#endif

#endif
