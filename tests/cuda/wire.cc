// SPDX-License-Identifier: BSD-3-Clause
//
// wire --driver PATH: what travels does not depend on where buffers are. Each collective is called
// with host memory on all ranks, then with memory of random kinds: each rank receives equally many
// bytes over TCP, and all ranks run the same algorithm.
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/cuda/kinds.h"
#include "tests/cuda/received.h"

namespace {

using test::Kind;
using test::KindMemory;
using test::received;

using test::rank, test::size;

struct Call {
  const char* name;
  size_t inputs, outputs;  // vectors: 1, or one for each rank
  void (*run)(const void* from, void* to, int count);
};

const std::vector<Call>& calls() {
  static const auto all = static_cast<size_t>(size);
  static const std::vector<Call> list = {
      {"allreduce", 1, 1,
       [](const void* from, void* to, int n) {
         MPI_Allreduce(from, to, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
       }},
      {"reduce", 1, 1,
       [](const void* from, void* to, int n) {
         MPI_Reduce(from, to, n, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
       }},
      {"reduce_scatter_block", all, 1,
       [](const void* from, void* to, int n) {
         MPI_Reduce_scatter_block(from, to, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
       }},
      {"bcast", 0, 1,
       [](const void*, void* to, int n) { MPI_Bcast(to, n, MPI_INT, 0, MPI_COMM_WORLD); }},
      {"allgather", 1, all,
       [](const void* from, void* to, int n) {
         MPI_Allgather(from, n, MPI_INT, to, n, MPI_INT, MPI_COMM_WORLD);
       }},
      {"alltoall", all, all, [](const void* from, void* to, int n) {
         MPI_Alltoall(from, n, MPI_INT, to, n, MPI_INT, MPI_COMM_WORLD);
       }}};
  return list;
}

// Otherwise links begin on sockets and leave them at some time.
bool is_over_tcp() {
  const char* const transport = std::getenv("SLUICE_TRANSPORT");
  return transport && std::string(transport) == "tcp";
}

struct Outcome {
  uint64_t bytes = 0;
  std::string algorithm;
};

Outcome run(const Call& call, Kind in, Kind out, size_t count) {
  static const auto last_algorithm =
      reinterpret_cast<const char* (*)(MPI_Comm)>(dlsym(RTLD_DEFAULT, "sluice_last_algorithm"));
  KindMemory from(in, call.inputs * count * sizeof(int)),
      to(out, call.outputs * count * sizeof(int));
  from.put(std::vector<int>(call.inputs * count, rank));
  to.put(std::vector<int>(call.outputs * count, rank));
  const uint64_t before = received();
  call.run(from.data(), to.data(), static_cast<int>(count));
  const uint64_t bytes = received() - before;
  return {bytes, last_algorithm ? last_algorithm(MPI_COMM_WORLD) : "none"};
}

void compare(const Call& call, size_t count, test::Random* random) {
  run(call, Kind::host, Kind::host, count);  // makes connections
  const Outcome plain = run(call, Kind::host, Kind::host, count);
  test::check(plain.algorithm != "none" && plain.algorithm != "mpi", plain.algorithm);
  for (int i = 0; i < 3; ++i) {
    const Kind in = test::kinds[random->below(std::size(test::kinds))];
    const Kind out = test::kinds[random->below(std::size(test::kinds))];
    const Outcome other = run(call, in, out, count);
    const std::string what = std::string(call.name) + " of " + std::to_string(count) + ", " +
                             name_of(in) + " and " + name_of(out) + ": ";
    test::check(other.algorithm == plain.algorithm, what + other.algorithm);
    test::check(!is_over_tcp() || other.bytes == plain.bytes,
                what + std::to_string(other.bytes) + " bytes, not " + std::to_string(plain.bytes));
  }
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const uint64_t seed = test::agree_on_seed(options);
  test::load_driver(options.text("driver", "libcuda.so.1"));
  test::Random random(seed + static_cast<uint64_t>(rank));
  const uint64_t before = received();
  for (const size_t count : {1, 300, 100000}) {
    for (const Call& call : calls()) compare(call, count, &random);
  }
  test::check(!is_over_tcp() || received() - before > 1000000, "bytes over TCP");
  return test::finish("wire");
}
