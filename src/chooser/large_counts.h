/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libsluice.so exports the collectives with counts of 64 bits (MPI_Bcast_c), which came with MPI 4,
 * so programs that look for them find them over any MPI library. For calls of those that the
 * library must do itself, and whose function it lacks, there are stand-ins.
 */
#pragma once

/* The stand-in for PMPI_X_c: calls the caller's MPI's PMPI_X if all counts and displacements fit in
 * an int. If they do not, the result is MPI_ERR_COUNT, at the communicator's error handler, and a
 * message is printed. Null if the name is none of these. */
void* sluice_large_counts(const char* name);
