/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which MPI library the process has, its symbols, and which library a call is meant for.
 */
#pragma once

#include "src/chooser/module.h"

/* The library whose function a call would reach without Sluice. */
enum SluiceReach {
  sluice_reaches_nothing, /* nobody has such a function */
  sluice_reaches_mpi,     /* the process's MPI library */
  sluice_reaches_another, /* a second MPI library, or a stand-in: it defines MPI_X, not PMPI_Init */
};

struct SluiceReached {
  enum SluiceReach reach;
  void* function;      /* of the other library; null if it lacks it */
  const char* library; /* the other's file; valid while it is loaded */
  int is_second_mpi;   /* the other is no stand-in: it has PMPI_Init */
  int is_for_all;      /* whoever calls the function reaches that library */
  int is_optional;     /* the caller can do without the function: it refers to it weakly */
};

/* For a call of the function (its name: PMPI_X) that returns to `caller`, as the dynamic linker
 * looks up: what all can see, then what the caller's own object is linked with. If neither tells,
 * as when the last call of a function in a plugin has become a jump, it is the process's MPI, or,
 * of MPI_Init when that is initialised, the next library. The process's MPI is the library that the
 * first call reaches; if that does not tell either, one that was loaded with RTLD_LOCAL under a
 * name that begins with libmpi. */
struct SluiceReached sluice_reach(const char* name, void* caller);

/* The file of the process's MPI library, once it is known. */
const char* sluice_mpi_file(void);

/* For all modules: symbols of the process's MPI library, once it is known, and of tools that come
 * before it. A second copy of Sluice is passed over. */
extern const struct SluiceLookUp sluice_look_up;

enum SluiceMpi {
  sluice_mpi_open,    /* Open MPI's handles */
  sluice_mpi_mpich,   /* MPICH's */
  sluice_mpi_5,       /* those of MPI 5's ABI */
  sluice_mpi_unknown, /* none of these */
};

/* The kind of the process's MPI, once it is known, by the library's symbols and by what it says of
 * itself. text: gets what that is, in one line, for a message; empty if it says nothing. */
enum SluiceMpi sluice_find_mpi(char* text, unsigned room);
