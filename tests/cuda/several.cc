// SPDX-License-Identifier: BSD-3-Clause
//
// several [--driver PATH] [--cases N] [--bytes N] [--count N] [--seed S] [--invalid NAME]: vectors
// of random lengths, or of one, that ranks have in several buffers each, some in one alone, of
// random kinds of memory if there is a driver (only host memory otherwise; with --devices 1 only
// memory of devices). What each case expects is computed here. --crossings 1: counts the bytes
// between the host and devices instead. --invalid: makes one such call (none, null, twice, count,
// root, op, inter) and prints the error; or calls on MPI_COMM_NULL (no_comm).
#include <mpi.h>
//
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>

#include "sluice/sluice.h"
#include "tests/cuda/kinds.h"

using test::Kind;
using test::KindMemory;
using test::Random;

namespace {

using test::rank, test::size;
bool has_driver = false, has_devices_alone = false;

Kind draw_kind(Random& random) {
  static const std::vector<Kind> of_devices{Kind::device, Kind::other_device, Kind::other_context,
                                            Kind::pool, Kind::mapped};
  if (has_devices_alone) return random.pick(of_devices);
  return has_driver ? test::kinds[random.below(std::size(test::kinds))] : Kind::host;
}

// Looked up, so that the program starts without Sluice, too.
template <typename Function>
Function* in_sluice(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  if (!found) test::fail(std::string(name) + " is not there: Sluice is not loaded");
  return reinterpret_cast<Function*>(found);
}
#define IN_SLUICE(function) in_sluice<decltype(function)>(#function)

struct Job {
  Random all, own;  // all: equal on all ranks
  size_t bytes, count;

  size_t draw_count(size_t element) {
    return count > 0 ? count : all.below(1 + all.below(1 + bytes / element));
  }
};

// A map x -> ax + b of numbers modulo 2^32. Composition is associative, and does not commute.
struct Map {
  uint32_t a, b;
  bool operator==(const Map&) const = default;
};
Map compose(const Map& first, const Map& second) {
  return {first.a * second.a, first.b * second.a + second.b};
}
void compose_all(void* left, void* right, int* n, MPI_Datatype*) {
  auto* const first = static_cast<const Map*>(left);
  auto* const second = static_cast<Map*>(right);
  for (int i = 0; i < *n; ++i) second[i] = compose(first[i], second[i]);
}

// The operand of a buffer of a rank.
template <typename T>
T element_of(uint64_t seed, int of, int buffer, size_t at);
template <>
int64_t element_of(uint64_t seed, int of, int buffer, size_t at) {
  return static_cast<int64_t>(seed % 1000) + of * 1000 + buffer * 7 + static_cast<int64_t>(at % 97);
}
template <>
double element_of(uint64_t seed, int of, int buffer, size_t at) {
  return static_cast<double>(element_of<int64_t>(seed, of, buffer, at));
}
template <>
Map element_of(uint64_t seed, int of, int buffer, size_t at) {
  return {static_cast<uint32_t>(2 * (seed + static_cast<uint64_t>(of) * 5 + at) + 3),
          static_cast<uint32_t>(buffer * 11 + of + 1)};
}

int64_t combine(int64_t left, int64_t right) { return left + right; }
double combine(double left, double right) { return left + right; }
Map combine(const Map& left, const Map& right) { return compose(left, right); }

// A rank's buffers, of elements at a distance of `stride`.
class Buffers {
 public:
  Buffers(Job& job, int n, size_t bytes) {
    for (int i = 0; i < n; ++i) {
      memory_.push_back(std::make_unique<KindMemory>(draw_kind(job.own), bytes));
      addresses_.push_back(memory_.back()->data());
    }
  }
  void* const* data() const { return addresses_.data(); }
  KindMemory& operator[](int i) { return *memory_[static_cast<size_t>(i)]; }

 private:
  std::vector<std::unique_ptr<KindMemory>> memory_;
  std::vector<void*> addresses_;
};

// How many buffers each rank has, 1 to 5.
std::vector<int> numbers_of_buffers(Job& job) {
  std::vector<int> numbers(static_cast<size_t>(size));
  for (int& each : numbers) each = 1 + static_cast<int>(job.all.below(5));
  return numbers;
}

template <typename T>
std::vector<T> expected_reduction(uint64_t seed, const std::vector<int>& numbers, size_t count) {
  std::vector<T> all(count);
  for (size_t i = 0; i < count; ++i) {
    T sum = element_of<T>(seed, 0, 0, i);
    for (int of = 0; of < size; ++of) {
      for (int k = of == 0 ? 1 : 0; k < numbers[static_cast<size_t>(of)]; ++k) {
        sum = combine(sum, element_of<T>(seed, of, k, i));
      }
    }
    all[i] = sum;
  }
  return all;
}

template <typename T>
void reduce(Job& job, MPI_Datatype type, MPI_Op op, MPI_Comm comm, const std::string& name) {
  const uint64_t seed = job.all.next();
  const size_t count = job.draw_count(sizeof(T));
  const std::vector<int> numbers = numbers_of_buffers(job);
  const int n = numbers[static_cast<size_t>(rank)];
  Buffers buffers(job, n, count * sizeof(T));
  for (int k = 0; k < n; ++k) {
    std::vector<T> operand(count);
    for (size_t i = 0; i < count; ++i) operand[i] = element_of<T>(seed, rank, k, i);
    buffers[k].put(operand);
  }
  const bool is_plain = n == 1 && job.own.chance(2);
  const int result = is_plain ? MPI_Allreduce(MPI_IN_PLACE, buffers.data()[0],
                                              static_cast<int>(count), type, op, comm)
                              : IN_SLUICE(sluice_allreduce_multi)(
                                    buffers.data(), n, static_cast<int>(count), type, op, comm);
  test::check(result == MPI_SUCCESS, "an allreduce of " + name);
  const std::vector<T> expected = expected_reduction<T>(seed, numbers, count);
  for (int k = 0; k < n; ++k) {
    test::check(buffers[k].get<T>(count) == expected,
                name + " of " + std::to_string(count) + " in buffer " + std::to_string(k));
  }
}

// Numbers with gaps, whose bytes stay.
void broadcast(Job& job, MPI_Datatype spaced, MPI_Comm comm) {
  const int root = static_cast<int>(job.all.below(static_cast<size_t>(size)));
  const bool has_gaps = job.all.chance(2);
  const size_t stride = has_gaps ? 3 : 1;
  const size_t count = job.draw_count(sizeof(int) * stride);
  const uint64_t seed = job.all.next();
  const int n = numbers_of_buffers(job)[static_cast<size_t>(rank)];
  Buffers buffers(job, n, count * stride * sizeof(int));
  std::vector<int> gaps(count * stride, -7), data = gaps;
  for (size_t i = 0; i < count; ++i)
    data[i * stride] = static_cast<int>(seed) + static_cast<int>(i);
  for (int k = 0; k < n; ++k) buffers[k].put(rank == root && k == 0 ? data : gaps);
  const MPI_Datatype type = has_gaps ? spaced : MPI_INT;
  const int length = static_cast<int>(count);
  const bool is_plain = n == 1 && job.own.chance(2);
  const int result =
      is_plain ? MPI_Bcast(buffers.data()[0], length, type, root, comm)
               : IN_SLUICE(sluice_bcast_multi)(buffers.data(), n, length, type, root, comm);
  test::check(result == MPI_SUCCESS, "a broadcast");
  for (int k = 0; k < n; ++k) {
    test::check(buffers[k].get<int>(count * stride) == data,
                "broadcast of " + std::to_string(count) + " in buffer " + std::to_string(k));
  }
}

void run_cases(Job& job, uint64_t cases) {
  MPI_Datatype map, one, spaced;
  MPI_Type_contiguous(2, MPI_UINT32_T, &map);
  MPI_Type_contiguous(1, MPI_INT, &one);
  MPI_Type_create_resized(one, 0, 3 * sizeof(int), &spaced);
  MPI_Type_commit(&map);
  MPI_Type_commit(&spaced);
  MPI_Op composition;
  MPI_Op_create(compose_all, 0, &composition);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (uint64_t i = 0; i < cases; ++i) {
    switch (job.all.below(4)) {
      case 0:
        reduce<int64_t>(job, MPI_INT64_T, MPI_SUM, comm, "sums of integers");
        break;
      case 1:
        reduce<double>(job, MPI_DOUBLE, MPI_SUM, comm, "sums");
        break;
      case 2:
        reduce<Map>(job, map, composition, comm, "compositions");
        break;
      default:
        broadcast(job, spaced, comm);
    }
  }
  MPI_Comm_free(&comm);
  MPI_Op_free(&composition);
  MPI_Type_free(&spaced);
  MPI_Type_free(&one);
  MPI_Type_free(&map);
}

int64_t counted(const char* name) { return CUDA(standin_counter)(name); }

void count_crossings_of_broadcast(const std::vector<std::unique_ptr<KindMemory>>& memory,
                                  const std::vector<void*>& buffers) {
  constexpr int count = 1 << 20;
  constexpr auto bytes = int64_t{count * sizeof(int)};
  const std::vector<int> data(count, 5);
  if (rank == 0) memory[0]->put(data);
  const auto n = static_cast<int>(buffers.size());
  const int64_t out = counted("bytes_out"), in = counted("bytes_in");
  IN_SLUICE(sluice_bcast_multi)(buffers.data(), n, count, MPI_INT, 0, MPI_COMM_WORLD);
  test::check(counted("bytes_out") - out == (rank == 0 ? bytes : 0), "a broadcast's bytes out");
  test::check(counted("bytes_in") - in == (rank == 0 ? 0 : bytes), "a broadcast's bytes in");
  for (const auto& each : memory) test::check(each->get<int>(count) == data, "the data");
}

// Between two ranks each byte of one vector crosses once each way, however many buffers there are.
void count_crossings() {
  constexpr int count = 1 << 20;
  constexpr auto bytes = int64_t{count * sizeof(int)};
  constexpr Kind used[] = {Kind::device, Kind::pool, Kind::other_device, Kind::device,
                           Kind::mapped};
  std::vector<std::unique_ptr<KindMemory>> memory;
  std::vector<void*> buffers;
  for (const Kind kind : used) {
    memory.push_back(std::make_unique<KindMemory>(kind, static_cast<size_t>(bytes)));
    memory.back()->put(std::vector<int>(count, 1 + rank));
    buffers.push_back(memory.back()->data());
  }
  const auto n = static_cast<int>(buffers.size());
  const int64_t out = counted("bytes_out"), in = counted("bytes_in");
  IN_SLUICE(sluice_allreduce_multi)(buffers.data(), n, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  test::check(counted("bytes_out") - out == bytes, "bytes out");
  test::check(counted("bytes_in") - in == bytes, "bytes in");
  const std::vector<int> expected(count, n * size * (size + 1) / 2);
  for (const auto& each : memory) test::check(each->get<int>(count) == expected, "the sums");
  count_crossings_of_broadcast(memory, buffers);
}

void make_invalid(const std::string& what) {
  double first = 1, second = 2;
  void* both[] = {&first, what == "null" ? nullptr : what == "twice" ? &first : &second};
  MPI_Comm comm = MPI_COMM_WORLD;
  if (what == "inter") {
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &part);
    MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &comm);
    MPI_Comm_free(&part);
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int n = what == "none" ? 0 : 2, count = what == "count" ? -1 : 1;
  const int result = what == "root"
                         ? IN_SLUICE(sluice_bcast_multi)(both, n, 1, MPI_DOUBLE, size, comm)
                         : IN_SLUICE(sluice_allreduce_multi)(
                               both, n, count, what == "op" ? MPI_BYTE : MPI_DOUBLE, MPI_SUM, comm);
  test::check(result != MPI_SUCCESS, "an error");
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  if (rank == 0) std::printf("error: %s\n", text);
  // (What is MPI's to judge may have been begun.)
  const bool is_mpis = what == "count" || what == "root" || what == "op";
  test::check(is_mpis || (first == 1 && second == 2), "the buffers");
}

int reported = 0;
void note_error(MPI_Comm*, int*, ...) { ++reported; }

// MPI reports such a call once, and the buffers stay as they are.
void call_without_communicator() {
  MPI_Errhandler noting;
  MPI_Comm_create_errhandler(note_error, &noting);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, noting);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, noting);
  double first = 1, second = 2;
  void* both[] = {&first, &second};
  (void)IN_SLUICE(sluice_allreduce_multi)(both, 2, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_NULL);
  test::check(reported == 1, std::to_string(reported) + " errors of an allreduce");
  (void)IN_SLUICE(sluice_bcast_multi)(both, 2, 1, MPI_DOUBLE, 0, MPI_COMM_NULL);
  test::check(reported == 2, std::to_string(reported) + " errors, with those of a broadcast");
  test::check(first == 1 && second == 2, "the buffers");
  MPI_Errhandler_free(&noting);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const uint64_t seed = test::agree_on_seed(options);
  const std::string driver = options.text("driver", "");
  has_driver = !driver.empty();
  has_devices_alone = options.number("devices", 0) > 0;
  if (has_driver) test::load_driver(driver);
  Job job{Random(seed), Random(seed + 1 + static_cast<uint64_t>(rank)),
          options.number("bytes", 300000), options.number("count", 0)};
  const std::string invalid = options.text("invalid", "");
  if (options.number("crossings", 0) > 0) {
    count_crossings();
  } else if (invalid == "no_comm") {
    call_without_communicator();
  } else if (!invalid.empty()) {
    make_invalid(invalid);
  } else {
    run_cases(job, options.number("cases", 100));
  }
  test::check(!has_driver || counted("misuse") == 0, "misuse of the driver");
  return test::finish("several");
}
