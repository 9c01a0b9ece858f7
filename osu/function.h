// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI functions that are measured: one row each, and where data lies before and after.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "osu/pattern.h"

namespace sluice::osu {

// What a call must bring about.
enum class Flow {
  none,         // no data: barrier
  from_root,    // the root's vector, in the one buffer that all have
  sum,          // the sum of all vectors, on all ranks
  sum_at_root,  // the same, on the root
  sum_shared,   // each rank has its share of the sum
  gathered,     // everyone's block, on all ranks
  exchanged,    // block d of rank s becomes block s of rank d
};

// The arguments of a call. counts and displs describe the blocks of functions that take vectors of
// them.
struct Arguments {
  const void* send;
  void* recv;
  int count;  // of the vector; of one block where the function counts in blocks
  const int* counts;
  const int* displs;
  MPI_Datatype type;
  MPI_Comm comm;
};

struct Function {
  const char* name;      // "allreduce": of the program osu_allreduce
  const char* mpi_name;  // "Allreduce"
  const char* title;     // as it stands in the output
  Flow flow;
  bool even;      // sum_shared: all shares are equal, what remains is left out
  bool in_place;  // takes MPI_IN_PLACE
  int (*call)(const Arguments& arguments);
};

// nullptr if there is none of that name.
const Function* find_function(const char* name);
// The first line of the output.
std::string title(const Function& function);

inline constexpr int root_rank = 0;

// Where a function's data lies on one rank, for messages of `count` elements.
struct Layout {
  Layout(const Function& function, size_t count, int rank, int ranks);

  size_t send_elements = 0, recv_elements = 0;
  size_t call_count = 0;            // Arguments::count
  std::vector<int> counts, displs;  // Arguments::counts and displs
  std::vector<Piece> send;  // what the send buffer holds before the call, and still holds after it
  std::vector<Piece>
      recv_before;  // what the receive buffer holds before the call if it is made in place
  std::vector<Piece> recv_after;  // what it must hold after the call
  bool takes_in_place =
      false;  // this rank passes MPI_IN_PLACE where the function is called in place

 private:
  void lay_blocks(const Function& function, size_t count, size_t ranks);
  void lay_pieces(const Function& function, size_t count, int rank, int ranks);
};

}  // namespace sluice::osu
