// SPDX-License-Identifier: BSD-3-Clause
//
// How MPI's functions are defined: `SLUICE_ENTRY PMPI_X(...) {...}` and, for the program's calls,
// `int MPI_X(...) SLUICE_ALIAS("PMPI_X");`.
#pragma once

#define SLUICE_ENTRY __attribute__((visibility("default"))) int
#define SLUICE_ALIAS(name) __attribute__((visibility("default"), alias(name)))
