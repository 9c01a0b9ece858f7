// SPDX-License-Identifier: BSD-3-Clause
//
// reduced --driver PATH --what PART: reductions over links that a CUDA device does. Which did it is
// told by the launches of kernels.
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/cuda/kinds.h"

namespace {

using test::Kind;
using test::KindMemory;

using test::rank, test::size;

int64_t counted(const char* name) { return CUDA(standin_counter)(name); }

// What a call changes of the driver's counters on this rank.
struct Cost {
  int64_t launches, out, in;
};
template <typename Call>
Cost cost_of(const Call& call) {
  const int64_t launches = counted("launches"), out = counted("bytes_out"),
                in = counted("bytes_in");
  test::check(call() == MPI_SUCCESS, "a reduction");
  return {counted("launches") - launches, counted("bytes_out") - out, counted("bytes_in") - in};
}

// (Different in each element, and on each rank.)
int value(int of, size_t i) { return static_cast<int>(i) * 3 + of * 1000003; }
std::vector<int> values(size_t count) {
  std::vector<int> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = value(rank, i);
  return all;
}
bool are_sums(const std::vector<int>& got) {
  for (size_t i = 0; i < got.size(); ++i) {
    unsigned sum = 0;
    for (int of = 0; of < size; ++of) sum += static_cast<unsigned>(value(of, i));
    if (got[i] != static_cast<int>(sum)) return false;
  }
  return true;
}

// An allreduce of ints; checks the result.
Cost sum(KindMemory& from, KindMemory& to, size_t count) {
  from.put(values(count));
  const Cost cost = cost_of([&] {
    return MPI_Allreduce(from.data(), to.data(), static_cast<int>(count), MPI_INT, MPI_SUM,
                         MPI_COMM_WORLD);
  });
  test::check(are_sums(to.get<int>(count)), "the sums");
  return cost;
}
// In memory of these kinds.
Cost sum(Kind in, Kind out, size_t count) {
  KindMemory from(in, count * sizeof(int)), to(out, count * sizeof(int));
  return sum(from, to, count);
}
Cost sum(size_t count) { return sum(Kind::device, Kind::device, count); }

// Between two ranks each byte crosses once each way.
void crossings() {
  constexpr size_t count = size_t{16} << 20;
  constexpr auto bytes = int64_t{count * sizeof(int)};
  const Cost cost = sum(count);
  test::check(cost.launches > 0, "launches");
  test::check(cost.out == bytes, std::to_string(cost.out) + " bytes out");
  test::check(cost.in == bytes, std::to_string(cost.in) + " bytes in");
}

// SLUICE_CUDA_REDUCE_LEAST is 4096, and ranks exchange messages over TCP.
void choice() {
  test::check(sum(1023).launches == 0, "less than the least");
  test::check(sum(1024).launches > 0, "the least");
  test::check(sum(5001).launches > 0, "more than the least");
  test::check(sum(Kind::device, Kind::host, 5001).launches == 0, "a result on the host");
  test::check(sum(Kind::host, Kind::device, 5001).launches == 0, "an operand on the host");
  test::check(sum(Kind::device, Kind::other_device, 5001).launches == 0, "two devices");
  test::check(sum(Kind::pool, Kind::mapped, 5001).launches > 0, "memory of no context");
  // Each rank decides by itself.
  const Kind own = rank % 2 == 0 ? Kind::host : Kind::device;
  test::check((sum(own, own, 5001).launches > 0) == (own == Kind::device), "some ranks alone");
}

// Other collectives, and calls that no device does.
void others() {
  constexpr int count = 5001;
  const auto all = static_cast<size_t>(count) * static_cast<size_t>(size);
  KindMemory data(Kind::device, all * sizeof(int)), result(Kind::device, all * sizeof(int));
  const auto expect = [&](const KindMemory& memory, bool is_there, const char* what) {
    test::check(!is_there || are_sums(memory.get<int>(count)), what);
  };

  data.put(values(count));
  const Cost in_place = cost_of([&] {
    return MPI_Allreduce(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  });
  expect(data, true, "the sums in place");
  test::check(in_place.launches > 0, "in place");

  data.put(values(count));
  const Cost at_root = cost_of([&] {
    return MPI_Reduce(data.data(), rank == 0 ? result.data() : nullptr, count, MPI_INT, MPI_SUM, 0,
                      MPI_COMM_WORLD);
  });
  expect(result, rank == 0, "the sums at the root");
  test::check(rank != 0 || at_root.launches > 0, "at the root");

  data.put(std::vector<int>(all, 1));
  const Cost scattered = cost_of([&] {
    return MPI_Reduce_scatter_block(data.data(), result.data(), count, MPI_INT, MPI_SUM,
                                    MPI_COMM_WORLD);
  });
  test::check(result.get<int>(count) == std::vector<int>(count, size), "the scattered sums");
  test::check(scattered.launches > 0, "scattered");

  // The input would have to be set aside first.
  data.put(std::vector<int>(all, 1));
  const Cost aside = cost_of([&] {
    return MPI_Reduce_scatter_block(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_SUM,
                                    MPI_COMM_WORLD);
  });
  test::check(data.get<int>(count) == std::vector<int>(count, size), "the sums scattered in place");
  test::check(aside.launches == 0, "scattered in place");
}

void add(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

// What a device has no kernel for.
void unknown() {
  constexpr int count = 5001;
  KindMemory from(Kind::device, count * sizeof(long double)),
      to(Kind::device, count * sizeof(long double));
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(add, 1, &op);
  from.put(values(count));
  const Cost own = cost_of(
      [&] { return MPI_Allreduce(from.data(), to.data(), count, MPI_INT, op, MPI_COMM_WORLD); });
  MPI_Op_free(&op);
  test::check(are_sums(to.get<int>(count)), "the sums of the program's own operation");
  test::check(own.launches == 0, "the program's own operation");

  from.put(std::vector<long double>(count, rank + 0.5L));
  const Cost extended = cost_of([&] {
    return MPI_Allreduce(from.data(), to.data(), count, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  });
  test::check(to.get<long double>(count) == std::vector<long double>(count, size - 0.5L),
              "extended precision");
  test::check(extended.launches == 0, "a type that devices lack");
}

// What HOW says fails on the last rank, which then goes by the host; and later, unless LASTS, not.
void lacking() {
  constexpr size_t count = 50000;
  const bool is_victim = rank == size - 1, lasts = std::getenv("LASTS") != nullptr;
  const char* const how = std::getenv("HOW");
  KindMemory from(Kind::device, count * sizeof(int)), to(Kind::device, count * sizeof(int));
  if (is_victim) test::check(CUDA(standin_fail)(how, "1+"), how);
  test::check((sum(from, to, count).launches == 0) == is_victim, "without what is lacking");
  CUDA(standin_fail)(how, "0");
  test::check((sum(from, to, count).launches == 0) == (is_victim && lasts), "afterwards");
}

void unpinned() { test::check(sum(50000).launches == 0, "without pinned memory"); }

// Nothing goes over links.
void shared() { test::check(sum(200000).launches == 0, "in shared memory"); }

struct Part {
  const char* name;
  void (*run)();
};
constexpr Part parts[] = {{"crossings", crossings}, {"choice", choice},   {"others", others},
                          {"unknown", unknown},     {"lacking", lacking}, {"shared", shared},
                          {"unpinned", unpinned}};

}  // namespace

int main(int argc, char** argv) {
  const test::Options options(argc, argv);
  const std::string what = options.text("what", "") + ",";
  test::start(argc, argv);
  test::load_driver(options.text("driver", "libcuda.so.1"));
  for (const Part& part : parts) {
    if (what.find(std::string(part.name) + ",") != std::string::npos) part.run();
  }
  test::check(counted("misuse") == 0, "misuse of the driver");
  return test::finish("reduced");
}
