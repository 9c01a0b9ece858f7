// SPDX-License-Identifier: BSD-3-Clause
//
// odd ROW...: calls in which one rank, the last, does what MPI forbids and MPI libraries may not
// notice. Each is made on a new communicator twice over: as its first call, and after a good one.
// All ranks print what came of it. MPI libraries that notice it have an error on that rank alone,
// and the others wait forever: so test_errors says which rows to try.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

constexpr unsigned watchdog = 240;
constexpr int most_ranks = 16;

using test::rank, test::size;
double in[256], out[256];
std::array<int, most_ranks> zeros, twos, places;
MPI_Datatype spread;  // as many bytes as two ints

struct Row {
  std::string name;
  int (*call)(bool odd, MPI_Comm comm);
};

// A row; `odd`: on this rank, `c`: the communicator.
#define ROW(name, function, ...)                                                   \
  {                                                                                \
#name, [](bool odd, MPI_Comm c) { (void)odd; return MPI_##function(__VA_ARGS__); } \
  }

std::array<int, most_ranks> own_is_one() {
  std::array<int, most_ranks> counts = twos;
  counts[static_cast<size_t>(rank)] = 1;
  return counts;
}

void* in_place_if(bool odd, double* else_this) { return odd ? MPI_IN_PLACE : else_this; }
void* null_if(bool odd, double* else_this) { return odd ? nullptr : else_this; }

#define I MPI_INT
const std::vector<Row> rows = {
    ROW(sends_fewer, Allgather, in, odd ? 1 : 2, I, out, 2, I, c),
    ROW(sends_nothing, Allgather, in, odd ? 0 : 2, I, out, 2, I, c),
    ROW(sends_more, Allgather, in, odd ? 3 : 2, I, out, 2, I, c),
    ROW(sends_fewer_v, Allgatherv, in, odd ? 1 : 2, I, out, twos.data(), places.data(), I, c),
    ROW(sends_fewer_to_all, Alltoall, in, odd ? 1 : 2, I, out, 2, I, c),
    ROW(sends_itself_fewer, Alltoallv, in, odd ? own_is_one().data() : twos.data(), places.data(),
        I, out, twos.data(), places.data(), I, c),
    ROW(null_bcast, Bcast, null_if(odd, in), 2, I, 0, c),
    ROW(null_result, Allreduce, in, null_if(odd, out), 2, I, MPI_SUM, c),
    ROW(null_operand, Allreduce, null_if(odd, in), out, 2, I, MPI_SUM, c),
    ROW(null_both, Allreduce, odd ? MPI_IN_PLACE : in, null_if(odd, out), 2, I, MPI_SUM, c),
    ROW(null_block, Allgather, null_if(odd, in), 2, I, out, 2, I, c),
    ROW(null_blocks, Alltoallv, in, twos.data(), places.data(), I, null_if(odd, out), twos.data(),
        places.data(), I, c),
    ROW(in_place_bcast, Bcast, in_place_if(odd, in), 2, I, 0, c),
    ROW(in_place_operand, Reduce, in_place_if(odd, in), out, 2, I, MPI_SUM, 0, c),
    ROW(unreadable, Allgather, in, 2, I, out, odd ? 1 : 2, odd ? spread : I, c),
    ROW(nothing_to_bcast, Bcast, in_place_if(odd, in), 0, I, 0, c),
    ROW(nothing_to_reduce, Reduce, in_place_if(odd, in), out, 0, I, MPI_SUM, 0, c),
    ROW(no_result, Allreduce, in, in_place_if(odd, out), 0, I, MPI_SUM, c),
    ROW(no_blocks, Allgather, in, 0, I, in_place_if(odd, out), 0, I, c),
    ROW(no_blocks_v, Allgatherv, in, 0, I, in_place_if(odd, out), zeros.data(), places.data(), I,
        c),
    ROW(no_exchange, Alltoall, in, 0, I, in_place_if(odd, out), 0, I, c),
    ROW(no_exchange_v, Alltoallv, in, zeros.data(), places.data(), I, in_place_if(odd, out),
        zeros.data(), places.data(), I, c),
    ROW(no_share, Reduce_scatter_block, in, in_place_if(odd, out), 0, I, MPI_SUM, c),
    ROW(no_share_v, Reduce_scatter, in, in_place_if(odd, out), zeros.data(), I, MPI_SUM, c),
};

int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

// What came of a call, in words.
std::string end_of(int result) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (result == MPI_SUCCESS) return "good";
  MPI_Error_string(result, text, &length);
  return "class " + std::to_string(class_of(result)) + ", " + text;
}

void attempt(const Row& row, bool first) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, row.name.c_str());
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (!first) {
    test::check(row.call(false, comm) == MPI_SUCCESS, row.name);
    MPI_Barrier(comm);  // (It may fail on a rank that leaves it late.)
  }
  const std::string end = end_of(row.call(rank == size - 1, comm));
  std::printf("%s %s: rank %d: %s\n", row.name.c_str(), first ? "first" : "later", rank,
              end.c_str());
  std::fflush(stdout);
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  alarm(watchdog);
  test::start(argc, argv);
  for (int i = 0; i < most_ranks; ++i) {
    twos[static_cast<size_t>(i)] = 2;
    places[static_cast<size_t>(i)] = 2 * i;
  }
  MPI_Type_vector(2, 1, 2, MPI_INT, &spread);
  MPI_Type_commit(&spread);
  for (int i = 1; i < argc; ++i) {
    const auto row = std::ranges::find(rows, argv[i], &Row::name);
    if (row == rows.end()) test::fail(std::string("no such row: ") + argv[i]);
    attempt(*row, true);
    attempt(*row, false);
  }
  MPI_Type_free(&spread);
  MPI_Finalize();
}
