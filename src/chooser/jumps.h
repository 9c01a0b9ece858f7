/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The exported functions: one jump each, through an entry of a table. (A call costs an instruction
 * or, on aarch64, four more than without.)
 */
#pragma once

#include "src/chooser/functions.h"

#define SLUICE_COUNT_ROW(name) +1
enum {
  sluice_jump_count =
      0 SLUICE_MPI_FUNCTIONS(SLUICE_COUNT_ROW) SLUICE_OWN_FUNCTIONS(SLUICE_COUNT_ROW)
};
#undef SLUICE_COUNT_ROW

/* In the order of functions.h. At first each entry leads to code that keeps the call's arguments,
 * calls sluice_choose and goes on where that says. Written by sluice_choose while other threads
 * read, so: atomically, with release. */
extern void* sluice_jumps[];

/* The address of the function with this index. Called by any thread, for each call until the
 * entry is written. */
void* sluice_choose(unsigned index);
