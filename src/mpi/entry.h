// SPDX-License-Identifier: BSD-3-Clause
//
// Macros that define MPI functions: `SLUICE_ENTRY PMPI_X(...) {...}` and, as its alias,
// `int MPI_X(...) SLUICE_ALIAS("PMPI_X");`.
#pragma once

#define SLUICE_ENTRY __attribute__((visibility("default"))) int
#define SLUICE_ALIAS(name) __attribute__((visibility("default"), alias(name)))
