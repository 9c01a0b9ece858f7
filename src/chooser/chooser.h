/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the parts of libsluice.so use of the chooser.
 */
#pragma once

/* As src/base/log.h: a line, by one system call. The format ends the line. */
__attribute__((format(printf, 1, 2))) void sluice_print(const char* format, ...);

/* Whether all calls of this process go to one MPI library. Once there are several, it never is so
 * again. */
int sluice_has_one_mpi(void);

/* MPI's function for calls that return to `caller` (PMPI_X; of a stand-in for MPI, MPI_X); null if
 * it lacks it. */
void* sluice_function(const char* name, void* caller);
