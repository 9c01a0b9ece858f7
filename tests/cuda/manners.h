// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of `manners` share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/kinds.h"

using test::Kind;
using test::KindMemory;

using test::rank, test::size;
extern bool has_driver;
// Primary contexts that the program itself retains at its end, and whether all else must be gone.
extern int64_t retained_at_end;
extern bool all_gone_at_end;
// The program has reset the device's primary context, so what is registered stays so.
extern bool pinned_at_end;

int64_t counted(const char* name);
// Of doubles, over all ranks. No whole device may be waited for.
void allreduce(const void* from, void* to, size_t count);
// rank + 1, and the sum of that.
std::vector<double> ones(size_t count);
void expect_sums(const KindMemory& memory, size_t count, const std::string& what);

void aliased();  // manners_aliased.cc
// In this call, or in the next one, an error; prints it.
void expect_error(const std::function<int()>& call);

// manners_handles.cc
void handles();

// manners_stuck.cc
void behind_a_message();
void stuck();

// manners_mpi.cc
void asked();

// manners_contexts.cc
void contexts();
void short_lived();
void without_context();
void reset();
void shut_down();
void capture();
void threads();
void first_threads();
void in_thread();
void reused();
void early();
void early_in_contexts();
void in_order();
void green();
void kept();
void queries();
void managed();
void waiting();
