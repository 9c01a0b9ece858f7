// SPDX-License-Identifier: BSD-3-Clause
//
// offload --driver PATH [--what NAME] [--seed S]: collectives on devices that NCCL carries, one
// device a rank. What each case expects is computed here.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "tests/cuda/kinds.h"

using test::Kind;
using test::KindMemory;

namespace {

int rank = 0, size = 0;

// The algorithm of a communicator's last call.
std::string algorithm_of(MPI_Comm communicator) {
  using Function = const char*(MPI_Comm);
  auto* const function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, "sluice_last_algorithm"));
  return function ? function(communicator) : "no Sluice";
}

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
  constexpr int count = 100000;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(parent, &made);
  KindMemory data(Kind::device, count * sizeof(int));
  int ready = 0;
  while (!ready) {
    data.put(values<int>(rank, count));
    MPI_Allreduce(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_SUM, made);
    test::check(data.get<int>(count) == combined<int>(count, MPI_SUM), "a sum while NCCL starts");
    ready = algorithm_of(made) == "nccl";
  }
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
  const MPI_Comm comm = offloaded(MPI_COMM_WORLD);
  reductions<int8_t>(comm, MPI_INT8_T, "int8");
  reductions<uint8_t>(comm, MPI_UINT8_T, "uint8");
  reductions<int32_t>(comm, MPI_INT32_T, "int32");
  reductions<uint32_t>(comm, MPI_UINT32_T, "uint32");
  reductions<int64_t>(comm, MPI_INT64_T, "int64");
  reductions<uint64_t>(comm, MPI_UINT64_T, "uint64");
  reductions<float>(comm, MPI_FLOAT, "float");
  reductions<double>(comm, MPI_DOUBLE, "double");
  MPI_Comm_free(const_cast<MPI_Comm*>(&comm));
}

struct Case {
  const char* name;
  void (*run)();
};
constexpr Case cases[] = {{"every_reduction", every_reduction}};

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const test::Options options(argc, argv);
  test::load_driver(options.text("driver", "libcuda.so.1"));
  const auto& contexts = test::primary_contexts();
  if (contexts.size() < static_cast<size_t>(size))
    test::fail("there must be a device for each rank");
  test::expect_success(CUDA(cuCtxSetCurrent)(contexts[static_cast<size_t>(rank)]),
                       "cuCtxSetCurrent");
  const std::string what = options.text("what", "");
  for (const Case& each : cases) {
    if (what.empty() || what == each.name) each.run();
  }
  test::summarize("offload");
  MPI_Finalize();
  return 0;
}
