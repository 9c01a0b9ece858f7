// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of `offload_failures` share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/kinds.h"
#include "tests/cuda/nccl_calls.h"

using test::Kind;
using test::KindMemory;

using test::rank, test::size;
extern int victim;          // victim: the last rank
extern std::string option;  // --how
// At the end: a copy may have been given up with its call.
extern bool may_be_pinned;

int64_t counted(const char* name);
// A duplicate whose errors are returned. started: NCCL carries its calls by now.
MPI_Comm duplicate(bool started);
// A communicator of the processes in another order, of which there are size!; errors are returned.
MPI_Comm permuted(int which);
// A sum on device memory, which is checked. Returns the error's text; empty: none.
std::string sum(MPI_Comm comm, size_t count = 20000);
std::string text_of(int result);
// Whether all ranks say so. Not by Sluice.
bool all(bool holds);
// Checks that the text, which it prints, is an error, on other ranks than the victim one that names
// it; and that later calls fail, too.
void expect_failure(MPI_Comm comm, const std::string& text);
void expect_sums(MPI_Comm comm, int calls, bool by_nccl);

// offload_mismatches.cc
void mismatches();

// offload_endings.cc
void unable();
void reasons();
void scratch();
void finalize_early();
void free_in_any_state();
void many();
void hints();
void forks();
