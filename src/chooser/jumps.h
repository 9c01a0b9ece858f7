/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The exported functions: one jump each, through an entry of a table. (A call costs an instruction
 * or, on aarch64, four more than without.)
 */
#pragma once

#include "src/chooser/functions.h"

/* Indices of the functions. */
#define SLUICE_INDEX_ROW(name) sluice_index_##name,
enum {
  SLUICE_MPI_FUNCTIONS(SLUICE_INDEX_ROW) SLUICE_OWN_FUNCTIONS(SLUICE_INDEX_ROW) sluice_jump_count
};
#undef SLUICE_INDEX_ROW

/* By index. Each entry is at first that of sluice_first_jumps, which leads to code that keeps the
 * call's arguments, calls sluice_choose and goes on where that says. Written by sluice_choose while
 * other threads read, so: atomically. */
extern void* sluice_jumps[];
extern void* const sluice_first_jumps[];

/* The address of the function for a call that returns to `caller`; never null. Called by any
 * thread, for each call whose entry is as at first. */
void* sluice_choose(unsigned index, void* caller);
