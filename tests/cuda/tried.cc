// SPDX-License-Identifier: BSD-3-Clause
//
// tried [--driver PATH] [--what sums|doubles|moves] [--kind device|host|turns] [--host-from N]
// [--calls N] [--devices own] [--votes 1]: the same call again and again, each checked. Prints who
// did stretches of six calls or more, between which trials tried others: "sums: flat from 0 to 64;
// ipc from 114 to 199". turns: data is now on the device, now on the host. --host-from: data is on
// the host from that call on. --votes: over TCP, prints which calls had a vote or another exchange
// before them, too: "votes: 0-88 1113-1137".
//
//   sums     MPI_Allreduce of integers
//   doubles  MPI_Allreduce of floating-point numbers whose sum depends on the order of the ranks;
//            the bits must be those of the first call
//   moves    MPI_Bcast
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/kinds.h"
#include "tests/cuda/nccl_calls.h"
#include "tests/cuda/received.h"

using test::Kind;
using test::KindMemory;
using test::rank, test::size;

namespace {

constexpr size_t count = 5000;

MPI_Comm comm = MPI_COMM_NULL;
Kind kind = Kind::device;

template <typename T>
std::vector<T> allreduce(const std::vector<T>& values, MPI_Datatype type) {
  KindMemory data(kind, count * sizeof(T));
  data.put(values);
  MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(count), type, MPI_SUM, comm);
  return data.get<T>(count);
}

void sum(int call) {
  std::vector<int> values(count), expected(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<int>(i) + call + rank;
    expected[i] = size * (static_cast<int>(i) + call) + size * (size - 1) / 2;
  }
  test::check(allreduce(values, MPI_INT) == expected, "a sum");
}

void sum_doubles(int call) {
  static std::vector<double> first;
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = 1.0 / static_cast<double>(3 + i % 1009 + 17 * static_cast<size_t>(rank));
  }
  const std::vector<double> sums = allreduce(values, MPI_DOUBLE);
  if (call == 0) first = sums;
  test::check(sums == first, "the bits of a sum");
}

void move(int call) {
  std::vector<int> values(count, rank), expected(count, call);
  const int root = call % size;
  if (rank == root) values = expected;
  KindMemory data(kind, count * sizeof(int));
  data.put(values);
  MPI_Bcast(data.data(), static_cast<int>(count), MPI_INT, root, comm);
  test::check(data.get<int>(count) == expected, "what was broadcast");
}

// Who did calls in a row.
struct Stretch {
  std::string by;
  int first = 0, calls = 0;
};

// (In windows nobody does more than five calls in a row. The first stretch has seven or more:
// trials begin early where a busy machine has made these calls long.)
std::string describe(const std::vector<Stretch>& all) {
  constexpr int longest_of_trial = 6;
  std::string text;
  for (const Stretch& each : all) {
    if (each.calls < longest_of_trial) continue;
    text += (text.empty() ? " " : "; ") + each.by + " from " + std::to_string(each.first) + " to " +
            std::to_string(each.first + each.calls - 1);
  }
  return text;
}

// The calls that brought more bytes than their data and what tells of it. (A vote is 144 bytes.) Of
// calls that the engine did not do, data came another way.
std::string describe_votes(const std::vector<uint64_t>& brought,
                           const std::vector<std::string>& by) {
  const auto votes = [&](size_t call) {
    if (call >= by.size()) return false;
    const bool is_elsewhere = by[call] == "mpi" || by[call] == "ipc" || by[call] == "nccl";
    return brought[call] > (is_elsewhere ? 0 : count * sizeof(int) + 100);
  };
  std::string text;
  for (size_t call = 0; call < by.size(); ++call) {
    if (!votes(call)) continue;
    const size_t first = call;
    while (votes(call + 1)) ++call;
    text += " " + std::to_string(first) + "-" + std::to_string(call);
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const test::Options options(argc, argv);
  const std::string what = options.text("what", "sums");
  const int calls = static_cast<int>(options.number("calls", 200));
  test::start(argc, argv);
  test::load_driver(options.text("driver", "libcuda.so.1"),
                    options.text("devices", "shared") == "own" ? rank : 0);
  const std::string kinds = options.text("kind", "device");
  const int host_from = static_cast<int>(options.number("host-from", calls));
  const bool counts_votes = options.number("votes", 0) != 0;
  const std::function<void(int)> one = what == "moves"     ? move
                                       : what == "doubles" ? sum_doubles
                                                           : sum;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<Stretch> all;
  std::vector<uint64_t> brought;
  std::vector<std::string> bys;
  uint64_t before = counts_votes ? test::received() : 0;
  for (int call = 0; call < calls; ++call) {
    const bool is_on_host = kinds == "host" || (kinds == "turns" && call % 2 == 1);
    kind = is_on_host || call >= host_from ? Kind::host : Kind::device;
    one(call);
    std::string by = test::algorithm_of(comm);
    if (by.empty()) by = "mpi";
    if (all.empty() || all.back().by != by) all.push_back({by, call, 0});
    ++all.back().calls;
    if (!counts_votes) continue;
    const uint64_t now = test::received();
    brought.push_back(now - before);
    bys.push_back(by);
    before = now;
  }
  MPI_Comm_free(&comm);
  if (rank == 0) std::printf("%s:%s\n", what.c_str(), describe(all).c_str());
  if (rank == 0) std::printf("votes:%s\n", describe_votes(brought, bys).c_str());
  test::finish("tried");
  return 0;
}
