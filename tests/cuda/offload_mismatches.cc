// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks that are in different calls, at least one of which has a vote before.
#include <cstdio>
#include <memory>

#include "tests/cuda/offload_failures.h"

namespace {

constexpr int count = 6000;

// Memory of each rank's, for any of the calls.
struct Buffers {
  KindMemory in{Kind::device, size_t{count} * 64}, out{Kind::device, size_t{count} * 64};
};

int reduce_all(MPI_Comm comm, int n, MPI_Datatype type, MPI_Op op) {
  const Buffers buffers;
  return MPI_Allreduce(buffers.in.data(), buffers.out.data(), n, type, op, comm);
}

int broadcast(MPI_Comm comm, int n, int root) {
  const Buffers buffers;
  return MPI_Bcast(buffers.in.data(), n, MPI_INT, root, comm);
}

// One rank has so many elements more than the others, and another as many less.
std::vector<int> blocks(bool differs) {
  std::vector<int> counts(static_cast<size_t>(size), count);
  counts[differs ? 0 : 1] += 100;
  counts[differs ? 1 : 0] -= 100;
  return counts;
}

int scatter(MPI_Comm comm, bool differs) {
  const Buffers buffers;
  return MPI_Reduce_scatter(buffers.in.data(), buffers.out.data(), blocks(differs).data(), MPI_INT,
                            MPI_SUM, comm);
}

int gather(MPI_Comm comm, bool differs) {
  const Buffers buffers;
  const std::vector<int> counts = blocks(differs);
  std::vector<int> offsets;
  for (int i = 0; i < size; ++i) offsets.push_back(2 * count * i);
  int own = 0;
  MPI_Comm_rank(comm, &own);
  return MPI_Allgatherv(buffers.in.data(), counts[static_cast<size_t>(own)], MPI_INT,
                        buffers.out.data(), counts.data(), offsets.data(), MPI_INT, comm);
}

int reduce(MPI_Comm comm, int root) {
  const Buffers buffers;
  return MPI_Reduce(buffers.in.data(), buffers.out.data(), count, MPI_INT, MPI_SUM, root, comm);
}

struct Mismatch {
  const char* name;
  int (*call)(MPI_Comm comm, bool differs);
  const char* wanted;  // in the error
};
const Mismatch list[] = {
    {"collectives",
     [](MPI_Comm comm, bool differs) {
       return differs ? broadcast(comm, count, 0) : reduce_all(comm, count, MPI_INT, MPI_SUM);
     },
     "the vote before a large "},
    {"counts",
     [](MPI_Comm comm, bool differs) {
       return reduce_all(comm, differs ? count + 10 : count, MPI_INT, MPI_SUM);
     },
     "counts or datatypes differ"},
    {"types",
     [](MPI_Comm comm, bool differs) {
       return reduce_all(comm, count, differs ? MPI_FLOAT : MPI_INT, MPI_SUM);
     },
     "another datatype"},
    {"operations",
     [](MPI_Comm comm, bool differs) {
       return reduce_all(comm, count, MPI_INT, differs ? MPI_MAX : MPI_SUM);
     },
     "by another operation"},
    {"roots", [](MPI_Comm comm, bool differs) { return broadcast(comm, count, differs ? 1 : 0); },
     "with root "},
    {"roots of a reduction", [](MPI_Comm comm, bool differs) { return reduce(comm, differs); },
     "with root "},
    {"blocks", scatter, "other sizes of blocks"},
    {"gathered blocks", gather, "other sizes of blocks"},
    {"a small call",
     [](MPI_Comm comm, bool differs) {
       return reduce_all(comm, differs ? 3 : count, MPI_INT, MPI_SUM);
     },
     "the vote before a large "},
    {"a large call",
     [](MPI_Comm comm, bool differs) {
       return reduce_all(comm, differs ? count : 3, MPI_INT, MPI_SUM);
     },
     "the vote before a large "},
    {"a barrier",
     [](MPI_Comm comm, bool differs) {
       return differs ? MPI_Barrier(comm) : reduce_all(comm, count, MPI_INT, MPI_SUM);
     },
     "the vote before a large "},
    {"an operation that has no vote",
     [](MPI_Comm comm, bool differs) {
       return reduce_all(comm, count, MPI_INT, differs ? MPI_BXOR : MPI_SUM);
     },
     "the vote before a large "},
};

// All ranks get an error that says how the calls differ. (A rank that was done gets it in its next
// call.)
void expect_mismatch(MPI_Comm comm, const Mismatch& mismatch) {
  int result = mismatch.call(comm, rank == victim);
  if (result == MPI_SUCCESS) result = MPI_Barrier(comm);
  const std::string text = text_of(result);
  std::printf("rank %d, %s: %s\n", rank, mismatch.name, text.c_str());
  test::check(text.find(mismatch.wanted) != std::string::npos, mismatch.name + (": " + text));
  test::check(MPI_Barrier(comm) != MPI_SUCCESS, "later calls fail, too");
}

}  // namespace

// In a communicator's first call; or (how: N) when NCCL carries its calls: the Nth, counted from 0,
// and those after it, each with a group of its own, of which there are as many as orders of the
// ranks.
void mismatches() {
  may_be_pinned = true;
  const auto all_of_them = static_cast<int>(std::size(list));
  if (option.empty()) {
    for (const Mismatch& mismatch : list) expect_mismatch(duplicate(false), mismatch);
    return;
  }
  int orders = 1;
  for (int i = 2; i <= size; ++i) orders *= i;
  const int first = std::stoi(option);
  for (int which = 0; which < orders && first + which < all_of_them; ++which) {
    MPI_Comm comm = permuted(which);
    test::start_nccl(comm);
    expect_mismatch(comm, list[first + which]);
  }
}
