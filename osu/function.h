// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI functions that are measured, one row each, and the layout of their data.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "osu/pattern.h"

namespace sluice::osu {

// What a call must do.
enum class Flow {
  none,         // no data: barrier
  from_root,    // the root's vector goes to all; each rank has one buffer
  sum,          // the sum of all vectors, on all ranks
  sum_at_root,  // the same, on the root only
  sum_shared,   // each rank gets its share of the sum
  sum_so_far,   // each rank gets the sum of the vectors up to its own
  sum_before,   // the same without its own; rank 0 gets nothing
  gathered,     // the blocks of all ranks, on all ranks
  exchanged,    // block d of rank s becomes block s of rank d
};

// The arguments of a call. counts and displs describe the blocks of functions with such arguments.
struct Arguments {
  const void* send;
  void* recv;
  int count;  // elements of the vector, or of one block
  const int* counts;
  const int* displs;
  MPI_Datatype type;
  MPI_Comm comm;
};

struct Function {
  const char* name;      // "allreduce": the program is osu_allreduce
  const char* mpi_name;  // "Allreduce"
  const char* title;     // as printed
  Flow flow;
  bool even;      // sum_shared: all shares are equal, a remainder is left out
  bool in_place;  // takes MPI_IN_PLACE
  int (*call)(const Arguments& arguments);
};

// nullptr if there is no such function.
const Function* find_function(const char* name);
// The first line of the output.
std::string title(const Function& function);

inline constexpr int root_rank = 0;

// The layout of a function's data on one rank, for messages of `count` elements.
struct Layout {
  Layout(const Function& function, size_t count, int rank, int ranks);

  size_t send_elements = 0, recv_elements = 0;
  size_t call_count = 0;            // Arguments::count
  std::vector<int> counts, displs;  // Arguments::counts and displs
  std::vector<Piece> send;          // the send buffer before and after the call
  std::vector<Piece> recv_before;   // the receive buffer before a call that reads it
  std::vector<Piece> recv_after;    // the receive buffer after the call
  bool takes_in_place = false;      // this rank passes MPI_IN_PLACE in an in-place call

 private:
  void lay_blocks(const Function& function, size_t count, size_t ranks);
  void lay_pieces(const Function& function, size_t count, int rank, int ranks);
};

}  // namespace sluice::osu
