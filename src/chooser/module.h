/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contract between libsluice.so, which chooses, and the modules that it chooses from. MPI
 * libraries differ in what a handle is, so src/mpi is compiled once for each representation of
 * handles, into a module of its own with all of Sluice in it:
 *   libsluice-openmpi.so  Open MPI: pointers
 *   libsluice-mpich.so    MPICH, Intel MPI, MVAPICH, Cray MPICH: integers
 *   libsluice-mpi5.so     libraries with the application binary interface of MPI 5
 * libsluice.so knows no handles and no arguments. Its functions jump to the module's, through a
 * table that the process's first call fills. C and C++.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with what follows and with the list of functions (functions.h). */
#define SLUICE_MODULE_VERSION 5

/* Symbols of the process's MPI library; null if it lacks them. Thread-safe. */
struct SluiceLookUp {
  /* A function: the one that follows libsluice.so in the order of look-up, so never Sluice's. For
   * collectives with counts of 64 bits there are stand-ins where MPI lacks them. */
  void* (*function)(const char* name);
  /* Data, or a function that Sluice does not define: the one that the program uses. */
  void* (*data)(const char* name);
};

/* What a module offers: constant, and valid for ever. */
struct SluiceModule {
  int version;         /* SLUICE_MODULE_VERSION */
  const char* release; /* SLUICE_VERSION: library and module must be of the same */
  unsigned count;
  void* const* functions; /* the addresses of its functions in the order of functions.h */
  const char* file;       /* its name as above; a copy by another name serves another MPI */
};

/* The one function that a module exports, as `sluice_module`. May be called several times, by any
 * thread, with the same look_up, which must stay valid. Calls nothing of MPI. *missing gets the
 * name of a function that the module needs and MPI lacks; nothing if there is none. */
typedef const struct SluiceModule* SluiceStart(const struct SluiceLookUp* look_up,
                                               const char** missing);

#ifdef __cplusplus
}
#endif
