// SPDX-License-Identifier: BSD-3-Clause
//
// offload --driver PATH [--what NAME] [--seed S]: collectives on devices that NCCL carries, one
// device a rank. What each case expects is computed here.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "tests/cuda/kinds.h"
#include "tests/cuda/nccl_calls.h"

using test::algorithm_of;
using test::Kind;
using test::KindMemory;

namespace {

using test::rank, test::size;

int value(int of, size_t at) { return of * 7 + static_cast<int>(at % 11); }

template <typename T>
std::vector<T> values(int of, size_t count) {
  std::vector<T> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<T>(value(of, i));
  return all;
}

template <typename T>
std::vector<T> combined(size_t count, MPI_Op op) {
  std::vector<T> all = values<T>(0, count);
  for (int of = 1; of < size; ++of) {
    const std::vector<T> more = values<T>(of, count);
    for (size_t i = 0; i < count; ++i) {
      if (op == MPI_SUM) all[i] = static_cast<T>(all[i] + more[i]);
      if (op == MPI_PROD) all[i] = static_cast<T>(all[i] * more[i]);
      if (op == MPI_MIN) all[i] = std::min(all[i], more[i]);
      if (op == MPI_MAX) all[i] = std::max(all[i], more[i]);
    }
  }
  return all;
}

// A communicator whose calls NCCL carries by now.
MPI_Comm offloaded(MPI_Comm parent) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(parent, &made);
  test::start_nccl(made);
  return made;
}

// Checks that NCCL carried the last call.
void expect_nccl(MPI_Comm communicator, const std::string& what) {
  test::check(algorithm_of(communicator) == "nccl",
              what + " was carried by " + algorithm_of(communicator));
}

template <typename T>
void reductions(MPI_Comm comm, MPI_Datatype type, const char* name) {
  const size_t count = 40000;
  const int n = static_cast<int>(count);
  for (const MPI_Op op : {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX}) {
    const std::vector<T> expected = combined<T>(count, op);
    KindMemory in(Kind::device, count * sizeof(T)), out(Kind::device, count * sizeof(T));
    in.put(values<T>(rank, count));
    MPI_Allreduce(in.data(), out.data(), n, type, op, comm);
    expect_nccl(comm, name);
    test::check(out.get<T>(count) == expected, std::string("allreduce of ") + name);
    test::check(in.get<T>(count) == values<T>(rank, count), std::string("input of ") + name);
    for (int root = 0; root < size; ++root) {
      out.put(values<T>(rank, count));
      MPI_Reduce(rank == root ? MPI_IN_PLACE : in.data(), out.data(), n, type, op, root, comm);
      expect_nccl(comm, name);
      test::check(out.get<T>(count) == (rank == root ? expected : values<T>(rank, count)),
                  std::string("reduce of ") + name);
    }
  }
}

void every_reduction() {
  MPI_Comm comm = offloaded(MPI_COMM_WORLD);
  reductions<int8_t>(comm, MPI_INT8_T, "int8");
  reductions<uint8_t>(comm, MPI_UINT8_T, "uint8");
  reductions<int32_t>(comm, MPI_INT32_T, "int32");
  reductions<uint32_t>(comm, MPI_UINT32_T, "uint32");
  reductions<int64_t>(comm, MPI_INT64_T, "int64");
  reductions<uint64_t>(comm, MPI_UINT64_T, "uint64");
  reductions<float>(comm, MPI_FLOAT, "float");
  reductions<double>(comm, MPI_DOUBLE, "double");
  MPI_Comm_free(&comm);
}

std::vector<int> block_of(int of, size_t count) { return values<int>(100 + of, count); }

// All ranks' blocks of so many elements, one after another, `gap` elements apart.
std::vector<int> all_blocks(const std::vector<int>& counts, int gap) {
  std::vector<int> all;
  for (int of = 0; of < size; ++of) {
    const std::vector<int> block =
        block_of(of, static_cast<size_t>(counts[static_cast<size_t>(of)]));
    all.insert(all.end(), block.begin(), block.end());
    all.insert(all.end(), static_cast<size_t>(gap), -1);
  }
  return all;
}

void broadcasts(MPI_Comm comm) {
  const size_t count = 30000;
  for (int root = 0; root < size; ++root) {
    KindMemory data(Kind::device, count * sizeof(int));
    data.put(values<int>(rank, count));
    MPI_Bcast(data.data(), static_cast<int>(count), MPI_INT, root, comm);
    expect_nccl(comm, "broadcast");
    test::check(data.get<int>(count) == values<int>(root, count), "broadcast");
  }
}

void allgathers(MPI_Comm comm, bool in_place) {
  const size_t count = 20000, all = count * static_cast<size_t>(size);
  KindMemory in(Kind::device, count * sizeof(int)), out(Kind::device, all * sizeof(int));
  in.put(block_of(rank, count));
  std::vector<int> before(all, -1);
  if (in_place) {
    const auto own = block_of(rank, count);
    std::ranges::copy(own, before.begin() + static_cast<ptrdiff_t>(count) * rank);
  }
  out.put(before);
  const int n = static_cast<int>(count);
  MPI_Allgather(in_place ? MPI_IN_PLACE : in.data(), n, MPI_INT, out.data(), n, MPI_INT, comm);
  expect_nccl(comm, "allgather");
  test::check(out.get<int>(all) == all_blocks(std::vector<int>(static_cast<size_t>(size), n), 0),
              "allgather");
}

// Uneven blocks, one of them empty, with gaps between them.
void uneven_allgathers(MPI_Comm comm, bool in_place) {
  constexpr int gap = 3;
  std::vector<int> counts, offsets;
  int total = 0;
  for (int of = 0; of < size; ++of) {
    counts.push_back(of == 1 ? 0 : 5000 * (of + 1));
    offsets.push_back(total);
    total += counts.back() + gap;
  }
  const int own = counts[static_cast<size_t>(rank)];
  KindMemory in(Kind::device, static_cast<size_t>(own) * sizeof(int)),
      out(Kind::device, static_cast<size_t>(total) * sizeof(int));
  const std::vector<int> block = block_of(rank, static_cast<size_t>(own));
  in.put(block);
  std::vector<int> before(static_cast<size_t>(total), -1);
  if (in_place) std::ranges::copy(block, before.begin() + offsets[static_cast<size_t>(rank)]);
  out.put(before);
  MPI_Allgatherv(in_place ? MPI_IN_PLACE : in.data(), own, MPI_INT, out.data(), counts.data(),
                 offsets.data(), MPI_INT, comm);
  expect_nccl(comm, "allgatherv");
  test::check(out.get<int>(static_cast<size_t>(total)) == all_blocks(counts, gap), "allgatherv");
}

void alltoalls(MPI_Comm comm, bool in_place) {
  const size_t count = 10000, all = count * static_cast<size_t>(size);
  const auto message = [&](int from, int to) { return values<int>(from * 10 + to, count); };
  std::vector<int> sent, expected;
  for (int other = 0; other < size; ++other) {
    const std::vector<int> to = message(rank, other), from = message(other, rank);
    sent.insert(sent.end(), to.begin(), to.end());
    expected.insert(expected.end(), from.begin(), from.end());
  }
  KindMemory in(Kind::device, all * sizeof(int)), out(Kind::device, all * sizeof(int));
  in.put(sent);
  out.put(in_place ? sent : std::vector<int>(all, -1));
  const int n = static_cast<int>(count);
  MPI_Alltoall(in_place ? MPI_IN_PLACE : in.data(), n, MPI_INT, out.data(), n, MPI_INT, comm);
  expect_nccl(comm, "alltoall");
  test::check(out.get<int>(all) == expected, "alltoall");
}

// The rest of a receive buffer that was the input too is undefined; Sluice leaves it alone.
void reduce_scatters(MPI_Comm comm, bool in_place, bool uneven) {
  std::vector<int> counts;
  int total = 0, before = 0;
  for (int of = 0; of < size; ++of) {
    if (of == rank) before = total;
    counts.push_back(uneven ? 7000 * of : 9000);
    total += counts.back();
  }
  const auto all = static_cast<size_t>(total),
             own = static_cast<size_t>(counts[static_cast<size_t>(rank)]);
  KindMemory in(Kind::device, all * sizeof(int)), out(Kind::device, all * sizeof(int));
  in.put(values<int>(rank, all));
  out.put(in_place ? values<int>(rank, all) : std::vector<int>(all, -1));
  const void* const from = in_place ? MPI_IN_PLACE : in.data();
  if (uneven) {
    MPI_Reduce_scatter(from, out.data(), counts.data(), MPI_INT, MPI_SUM, comm);
  } else {
    MPI_Reduce_scatter_block(from, out.data(), counts[0], MPI_INT, MPI_SUM, comm);
  }
  expect_nccl(comm, "reduce_scatter");
  const std::vector<int> sums = combined<int>(all, MPI_SUM);
  const auto first = sums.begin() + before;
  test::check(out.get<int>(own) == std::vector<int>(first, first + static_cast<ptrdiff_t>(own)),
              "reduce_scatter");
}

// Memory of a pool is in no context, and may be beside memory that is.
void pools() {
  const size_t count = 20000;
  MPI_Comm comm = offloaded(MPI_COMM_WORLD);
  for (const auto& [from, to] :
       {std::pair(Kind::pool, Kind::device), std::pair(Kind::device, Kind::pool),
        std::pair(Kind::pool, Kind::pool)}) {
    KindMemory in(from, count * sizeof(int)), out(to, count * sizeof(int));
    in.put(values<int>(rank, count));
    MPI_Allreduce(in.data(), out.data(), static_cast<int>(count), MPI_INT, MPI_SUM, comm);
    expect_nccl(comm, "a sum of pools");
    test::check(out.get<int>(count) == combined<int>(count, MPI_SUM), "a sum of pools");
  }
  MPI_Comm_free(&comm);
}

void every_move() {
  MPI_Comm comm = offloaded(MPI_COMM_WORLD);
  for (int round = 0; round < 3; ++round) {
    broadcasts(comm);
    for (const bool in_place : {false, true}) {
      allgathers(comm, in_place);
      uneven_allgathers(comm, in_place);
      alltoalls(comm, in_place);
      reduce_scatters(comm, in_place, false);
      reduce_scatters(comm, in_place, true);
    }
  }
  MPI_Comm_free(&comm);
}

// Calls that repeat each other but for where some ranks have their buffers. NCCL carries those that
// most ranks have on devices, and the others go their usual way.
void changing_kinds(uint64_t seed) {
  const size_t count = 50000;
  test::Random shared(seed), own(seed + 1 + static_cast<uint64_t>(rank));
  MPI_Comm comm = offloaded(MPI_COMM_WORLD);
  std::vector<std::unique_ptr<KindMemory>> buffers;
  for (const Kind kind : test::kinds) {
    buffers.push_back(std::make_unique<KindMemory>(kind, count * sizeof(int)));
  }
  const auto device = static_cast<size_t>(Kind::device);
  int by_nccl = 0, otherwise = 0;
  for (int call = 0; call < 150; ++call) {
    const size_t rarely = 1 + shared.below(6);  // a rank's buffers are elsewhere
    const auto pick = [&]() -> KindMemory& {
      return *buffers[own.chance(rarely) ? own.below(buffers.size()) : device];
    };
    KindMemory& data = pick();
    data.put(values<int>(rank, count));
    MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(count), MPI_INT, MPI_SUM, comm);
    test::check(data.get<int>(count) == combined<int>(count, MPI_SUM),
                std::string("a sum by ") + algorithm_of(comm));
    ++(algorithm_of(comm) == "nccl" ? by_nccl : otherwise);
  }
  test::check(by_nccl > 0 && otherwise > 0, "both ways were taken");
  MPI_Comm_free(&comm);
}

// Columns of a matrix are not contiguous on any rank, or on one.
void derived_types() {
  constexpr int rows = 3000, columns = 4;
  MPI_Datatype column = MPI_DATATYPE_NULL;
  MPI_Type_vector(rows, 1, columns, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Comm comm = offloaded(MPI_COMM_WORLD);
  for (int root = 0; root < size; ++root) {
    const std::vector<int> matrix = values<int>(rank, rows * columns);
    KindMemory data(Kind::device, matrix.size() * sizeof(int));
    data.put(matrix);
    const bool has_column = rank == size - 1;  // the others have their numbers side by side
    MPI_Bcast(data.data(), has_column ? 1 : rows, has_column ? column : MPI_INT, root, comm);
    const size_t stride = has_column ? columns : 1;
    const size_t root_stride = root == size - 1 ? columns : 1;
    std::vector<int> expected = matrix;
    for (size_t row = 0; row < rows; ++row) expected[row * stride] = value(root, row * root_stride);
    test::check(data.get<int>(matrix.size()) == expected, "a column by " + algorithm_of(comm));
    if (size > 2) expect_nccl(comm, "a column of one rank");
  }
  MPI_Type_free(&column);
  MPI_Comm_free(&comm);
}

// Threads that use two communicators in orders of their own.
void orders(uint64_t seed) {
  const size_t count = 30000;
  MPI_Comm comms[] = {offloaded(MPI_COMM_WORLD), offloaded(MPI_COMM_WORLD)};
  int reversed = size - 1 - rank;
  MPI_Comm_split(MPI_COMM_WORLD, 0, reversed, &comms[1]);  // another list of processes
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  const CUcontext context = test::primary_contexts()[static_cast<size_t>(rank)];
  for (const MPI_Comm comm : comms) {
    threads.emplace_back([&, comm] {
      test::expect_success(CUDA(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
      test::Random own(seed + static_cast<uint64_t>(rank) * 2 + (comm == comms[0]));
      KindMemory data(Kind::device, count * sizeof(int));
      for (int call = 0; call < 120; ++call) {
        if (own.chance(4)) std::this_thread::sleep_for(std::chrono::microseconds(own.below(500)));
        data.put(values<int>(rank, count));
        MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(count), MPI_INT, MPI_SUM, comm);
        wrong += data.get<int>(count) != combined<int>(count, MPI_SUM);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  test::check(wrong == 0, "sums of two threads");
}

// Duplicates share what NCCL has, and a part of the world needs its own.
void communicators() {
  for (int round = 0; round < 6; ++round) {
    MPI_Comm comm = offloaded(MPI_COMM_WORLD), part = MPI_COMM_NULL;
    broadcasts(comm);
    MPI_Comm_split(comm, rank == 0, 0, &part);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&part);
  }
}

struct Case {
  const char* name;
  std::function<void(uint64_t seed)> run;
};
const Case cases[] = {
    {"every_reduction", [](uint64_t) { every_reduction(); }},
    {"every_move", [](uint64_t) { every_move(); }},
    {"pools", [](uint64_t) { pools(); }},
    {"changing_kinds", changing_kinds},
    {"derived_types", [](uint64_t) { derived_types(); }},
    {"orders", orders},
    {"communicators", [](uint64_t) { communicators(); }},
};

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv, MPI_THREAD_MULTIPLE);
  const test::Options options(argc, argv);
  test::load_driver(options.text("driver", "libcuda.so.1"), rank);
  const std::string what = options.text("what", "");
  const uint64_t seed = test::agree_on_seed(options);
  for (const Case& each : cases) {
    if (what.empty() || what == each.name) each.run(seed);
  }
  return test::finish("offload");
}
