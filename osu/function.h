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

// What a buffer holds.
enum class Holding {
  nothing,
  one,          // one vector, or one block
  share,        // a share of the vector; the first ranks have an element more if that is needed
  equal_share,  // the same, but all shares are equal and a remainder is left out
  each,         // blocks: one for each rank, or one of each rank
};

enum class Members { all, root, all_but_first };

// Whether what arrives is a sum, and which ranks' vectors it is of.
enum class Addends { none, of_all, up_to_own, before_own };

// What a call must do: the ranks of `senders` give what their send buffers hold, and those of
// `receivers` get what their receive buffers then hold. No other buffer may change.
struct Flow {
  Holding send = Holding::nothing, recv = Holding::nothing;
  Members senders = Members::all, receivers = Members::all;
  Addends addends = Addends::none;
  bool one_buffer = false;  // a rank's receive buffer is its send buffer, too

  bool moves_data() const { return recv != Holding::nothing; }
  bool takes_in_place() const { return moves_data() && !one_buffer; }
  bool has_shares() const { return recv == Holding::share || recv == Holding::equal_share; }
  bool has_blocks() const { return send == Holding::each || recv == Holding::each; }
  bool sends(int rank) const;
  bool receives(int rank) const;
  // The elements in both buffers of the rank that has most, for messages of `count` elements.
  size_t most_elements(size_t count, int ranks) const;
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
  int (*call)(const Arguments& arguments);
};

// nullptr if there is no such function.
const Function* find_function(const char* name);
// The first line of the output.
std::string title(const Function& function);

inline constexpr int root_rank = 0;

// The layout of a function's data on one rank, for messages of `count` elements. in_place: the call
// takes MPI_IN_PLACE on the ranks that may pass it, those that both send and receive.
struct Layout {
  Layout(const Function& function, size_t count, int rank, int ranks, bool in_place = false);

  size_t vector_elements = 0;  // of one vector, or of one block
  size_t send_elements = 0, recv_elements = 0;
  size_t call_count = 0;            // Arguments::count
  std::vector<int> counts, displs;  // Arguments::counts and displs
  std::vector<Piece> send;          // the send buffer before and after the call
  std::vector<Piece> recv_before;   // the receive buffer before a call that reads it
  std::vector<Piece> recv_after;    // the receive buffer after the call
  size_t recv_written = 0;          // the call may write so many elements of it, from its start
  bool send_in_place = false;       // this rank passes MPI_IN_PLACE as its send buffer
  bool recv_in_place = false;       // or as its receive buffer

 private:
  void lay_blocks(const Flow& flow, size_t count, int ranks);
  void lay_sent(const Flow& flow, int rank);
  void lay_received(const Flow& flow, int rank);
  void lay_in_place(const Flow& flow, int rank);
  Piece block_at(size_t place, int source, int block) const;
  std::vector<Piece> result(const Flow& flow, int rank) const;
};

}  // namespace sluice::osu
