/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which MPI library the process has, and its symbols.
 */
#pragma once

#include "src/chooser/module.h"

/* For all modules. An MPI library that was loaded with RTLD_LOCAL, as by an extension module of a
 * language, is found, too. If the process has two, all symbols are those of the first, or of none.
 * A second copy of Sluice is passed over. */
extern const struct SluiceLookUp sluice_look_up;

enum SluiceMpi {
  sluice_mpi_none,    /* the process has no MPI library */
  sluice_mpi_open,    /* Open MPI's handles */
  sluice_mpi_mpich,   /* MPICH's */
  sluice_mpi_5,       /* those of MPI 5's ABI */
  sluice_mpi_unknown, /* none of these */
};

/* By the library's symbols, and by what it says of itself. text: gets what that is, in one line,
 * for a message; empty if it says nothing. */
enum SluiceMpi sluice_find_mpi(char* text, unsigned room);
