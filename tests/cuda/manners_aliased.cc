// SPDX-License-Identifier: BSD-3-Clause
//
// Calls whose input and output are the same device memory, or overlap. MPI must see that, as it
// does in host memory.
#include <numeric>

#include "tests/cuda/manners.h"

namespace {

// Of a call's communicator.
struct Ranks {
  MPI_Comm comm;
  int rank = 0, size = 0;
  std::vector<int> ones, places;

  explicit Ranks(MPI_Comm which) : comm(which) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    ones.assign(static_cast<size_t>(size), 1);
    places.resize(static_cast<size_t>(size));
    std::iota(places.begin(), places.end(), 0);
  }
  int last() const { return size - 1; }
};

// Invalid calls, at the last rank at least.
struct Call {
  const char* name;
  int (*make)(int* both, const Ranks& r);
};
const Call calls[] = {{"allreduce",
                       [](int* both, const Ranks& r) {
                         return MPI_Allreduce(both, both, 2, MPI_INT, MPI_SUM, r.comm);
                       }},
                      {"reduce",
                       [](int* both, const Ranks& r) {
                         return MPI_Reduce(both, both, 2, MPI_INT, MPI_SUM, r.last(), r.comm);
                       }},
                      {"allgather",
                       [](int* both, const Ranks& r) {
                         return MPI_Allgather(both + r.rank, 1, MPI_INT, both, 1, MPI_INT, r.comm);
                       }},
                      {"allgatherv",
                       [](int* both, const Ranks& r) {
                         return MPI_Allgatherv(both + r.rank, 1, MPI_INT, both, r.ones.data(),
                                               r.places.data(), MPI_INT, r.comm);
                       }},
                      {"alltoall",
                       [](int* both, const Ranks& r) {
                         return MPI_Alltoall(both, 1, MPI_INT, both, 1, MPI_INT, r.comm);
                       }},
                      {"alltoallv",
                       [](int* both, const Ranks& r) {
                         return MPI_Alltoallv(both, r.ones.data(), r.places.data(), MPI_INT, both,
                                              r.ones.data(), r.places.data(), MPI_INT, r.comm);
                       }},
                      {"reduce_scatter",
                       [](int* both, const Ranks& r) {
                         return MPI_Reduce_scatter(both, both, r.ones.data(), MPI_INT, MPI_SUM,
                                                   r.comm);
                       }},
                      {"reduce_scatter_block", [](int* both, const Ranks& r) {
                         return MPI_Reduce_scatter_block(both, both, 1, MPI_INT, MPI_SUM, r.comm);
                       }}};

int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

bool sums_up(MPI_Comm comm) {
  int one = 1, sum = 0;
  return MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == size;
}

enum class Use { first, later, by_mpi };  // of a communicator, when the invalid call comes

MPI_Comm make_comm(Use use) {
  MPI_Comm comm;
  MPI_Info info;
  MPI_Info_create(&info);
  if (use == Use::by_mpi) MPI_Info_set(info, "sluice", "off");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (use != Use::first) test::check(sums_up(comm), "the first call");
  return comm;
}

// A call that MPI refuses is made by the last rank alone, which it returns at once there.
void compare(const Call& call, Use use, int expected, int* both) {
  MPI_Comm comm = make_comm(use);
  const Ranks ranks(comm);
  const bool takes_part = expected == MPI_SUCCESS || rank == ranks.last();
  const int got = takes_part ? class_of(call.make(both, ranks)) : expected;
  test::check(got == expected, std::string(call.name) + " in the same device memory: class " +
                                   std::to_string(got) + ", not " + std::to_string(expected));
  test::check(sums_up(comm), "a valid call after it");
  MPI_Comm_free(&comm);
}

// A valid call: blocks to send and blocks to receive alternate in the same memory.
void interleave() {
  MPI_Comm comm = make_comm(Use::by_mpi);
  const Ranks r(comm);
  std::vector<int> from, to, values, expected;
  for (int i = 0; i < size; ++i) {
    from.push_back(2 * i);
    to.push_back(2 * i + 1);
    values.insert(values.end(), {100 * rank + i, -1});
    expected.insert(expected.end(), {100 * rank + i, 100 * i + rank});
  }
  KindMemory both(Kind::device, values.size() * sizeof(int));
  both.put(values);
  MPI_Alltoallv(both.data(), r.ones.data(), from.data(), MPI_INT, both.data(), r.ones.data(),
                to.data(), MPI_INT, comm);
  test::check(both.get<int>(values.size()) == expected, "blocks that alternate");
  MPI_Comm_free(&comm);
}

}  // namespace

// What MPI has an error for is found out in host memory, on communicators of one rank.
void aliased() {
  MPI_Comm alone;
  MPI_Comm_dup(MPI_COMM_SELF, &alone);
  MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // where Open MPI reports some
  const Ranks self(alone);
  int errors = 0;
  for (const Call& call : calls) {
    std::vector<int> host(static_cast<size_t>(size) + 2);
    KindMemory device(Kind::device, host.size() * sizeof(int));
    device.put(host);
    const int expected = class_of(call.make(host.data(), self));
    errors += expected != MPI_SUCCESS;
    test::check(class_of(call.make(static_cast<int*>(device.data()), self)) == expected,
                std::string(call.name) + " of one rank");
    for (const Use use : {Use::first, Use::later, Use::by_mpi}) {
      compare(call, use, expected, static_cast<int*>(device.data()));
    }
  }
  test::check(errors > 0, "MPI checks nothing?");
  interleave();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&alone);
}
