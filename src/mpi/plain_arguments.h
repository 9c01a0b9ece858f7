// SPDX-License-Identifier: BSD-3-Clause
//
// The arguments with which MPI does a call that Sluice hands over. They are made from the call's
// views, not from the program's arguments: data is bytes, or elements of a predefined type if they
// are reduced, and dense. So all ranks' calls look alike, whatever datatypes the program uses, and
// avoid known faults of MPI libraries. (Open MPI 4.1.4 hangs where ranks give one signature as
// different types: it cuts messages by count.)
#pragma once

#include <vector>

#include "src/mpi/describe.h"
#include "src/mpi/exchange.h"

namespace sluice {

class PlainArguments {
 public:
  // From a call whose views are set. program: its arguments, which name the communicator and the
  // operation, and must outlive this. False if MPI's function can't take the views: a count or a
  // displacement is no int, or the function has one count and blocks lie apart. May throw
  // std::bad_alloc.
  bool set(const Exchange& placed, const Arguments& program, Position position);
  // For views that differ from those of `set` only in their addresses.
  void put_buffers(const Call& call);
  const Arguments& get() const { return arguments_; }

 private:
  bool set_counts(const Call& call, Position position);
  bool set_one(const View& view, MPI_Count* count);
  bool set_array(const View& view, Numbers* counts, Numbers* displacements, size_t at, Rank ranks);

  Arguments arguments_;
  bool is_in_place_ = false;
  std::vector<int> numbers_;  // counts and displacements
};

// Where the input of a call in place (but for reduce_scatter) is to lie in the output: MPI does
// such a call in place, too, because all ranks must do it alike.
std::byte* place_in_output(const Call& call, Rank rank);

}  // namespace sluice
