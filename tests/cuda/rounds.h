// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of `rounds` share.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda/kinds.h"
#include "tests/cuda/nccl_calls.h"

using test::algorithm_of;
using test::Kind;
using test::KindMemory;

using test::rank, test::size;
extern int victim;          // victim: the last rank
extern std::string option;  // --how
// At the end something of Sluice's may be left: a call has failed.
extern bool may_be_left;

// Of the stand-in driver.
int64_t counted(const char* name);
// A duplicate of the world, whose errors are returned.
MPI_Comm duplicate();
std::string text_of(int result);
// Whether all ranks say so. Not by Sluice.
bool all(bool holds);
// A sum on device memory, which is checked. Returns the error's text; empty: none.
std::string sum(MPI_Comm comm, size_t count = 20000, Kind kind = Kind::device);
// Such sums, all by CUDA IPC, or none.
void expect_sums(MPI_Comm comm, int calls, bool by_ipc);

// rounds_failures.cc
void failures();
void killed(const std::string& account);
void stuck();
void stuck_in_a_vote();
void failures_of_a_part();
void reset();
void forks();
void reasons();
void mismatches();
