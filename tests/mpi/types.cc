// SPDX-License-Identifier: BSD-3-Clause
//
// types MODE...: tests of datatypes, one after another.
//   cycles [--cycles N]   types made, used and freed repeatedly leak nothing
//   empty, hollow         types and calls without data; types with components without data
//   absolute              MPI_BOTTOM on one rank only
//   callbacks             types used by delete callbacks while they are freed
//   deep [--levels N]     types nested N levels deep, with little stack
//   many [--blocks N]     one type of many blocks; prints the process's peak memory
//   packed                buffers in which communicators packed large messages are given back
//   huge                  one non-contiguous element of more than 2 GiB, different on each rank
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>

#include "tests/mpi/harness.h"

namespace {

int rank_in_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// An indexed type in a vector, and a duplicate of it; used, then freed in either order.
void use_fresh_types(uint64_t round) {
  const int places[] = {5, 1, 9};
  MPI_Datatype list, type, copy;
  MPI_Type_create_indexed_block(3, 1, places, MPI_INT, &list);
  MPI_Type_create_hvector(2, 1, 48, list, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&list);
  const int root = static_cast<int>(round % 2), mine = static_cast<int>(round) + 1;
  int numbers[32] = {};
  if (rank_in_world() == root) {
    for (int& number : numbers) number = mine;
  }
  MPI_Bcast(numbers, 1, type, root, MPI_COMM_WORLD);
  MPI_Type_dup(type, &copy);
  MPI_Type_free(round % 3 == 0 ? &type : &copy);
  MPI_Bcast(numbers, 1, round % 3 == 0 ? copy : type, root, MPI_COMM_WORLD);
  MPI_Type_free(round % 3 == 0 ? &copy : &type);
  for (const int at : {1, 5, 9, 13, 17, 21}) test::check(numbers[at] == mine, "a fresh type");
  if (rank_in_world() != root) test::check(numbers[0] == 0 && numbers[2] == 0, "beside it");
}

// What MPI itself may leak per cycle: MPICH 4.0 sometimes keeps 64 bytes of every derived type.
// Sluice's data about a type is larger.
#ifdef MPICH_VERSION
constexpr size_t lost_by_mpi = 3 * 64;
#else
constexpr size_t lost_by_mpi = 0;
#endif

void run_cycles(uint64_t cycles) {
  for (uint64_t i = 0; i < cycles / 5; ++i) use_fresh_types(i);
  const size_t before = test::resident_bytes();
  for (uint64_t i = cycles / 5; i < cycles; ++i) use_fresh_types(i);
  const size_t after = test::resident_bytes();
  test::check(after < before + (size_t{1} << 20) + cycles * lost_by_mpi,
              "memory grew from " + std::to_string(before) + " to " + std::to_string(after));
}

// Elements without bytes in every function that takes datatypes, and counts of zero from
// MPI_BOTTOM: no memory may be touched, and no rank may wait for a message that never comes.
void run_empty() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Datatype nothing, spaced;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_create_resized(nothing, -4, 16, &spaced);
  MPI_Type_commit(&spaced);
  MPI_Type_free(&nothing);
  const std::vector<int> threes(static_cast<size_t>(size), 3), zeros(static_cast<size_t>(size), 0);
  const auto all = [&](MPI_Datatype type, const std::vector<int>& counts, void* from, void* to) {
    const int n = counts[0], *c = counts.data(), *at = threes.data();
    MPI_Bcast(to, n, type, size - 1, MPI_COMM_WORLD);
    MPI_Allgather(from, n, type, to, n, type, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, n, type, MPI_COMM_WORLD);
    MPI_Allgatherv(from, n, type, to, c, at, type, MPI_COMM_WORLD);
    MPI_Gather(from, n, type, to, n, type, size - 1, MPI_COMM_WORLD);
    MPI_Gatherv(from, n, type, to, c, at, type, 0, MPI_COMM_WORLD);
    MPI_Scatter(from, n, type, to, n, type, 0, MPI_COMM_WORLD);
    MPI_Scatterv(from, c, at, type, to, n, type, size - 1, MPI_COMM_WORLD);
    MPI_Alltoall(from, n, type, to, n, type, MPI_COMM_WORLD);
    MPI_Alltoallv(from, c, at, type, to, c, at, type, MPI_COMM_WORLD);
    MPI_Alltoallv(MPI_IN_PLACE, c, at, type, to, c, at, type, MPI_COMM_WORLD);
  };
  std::vector<char> from(1000, 'f'), to(1000, 't');
  all(spaced, threes, from.data() + 100, to.data() + 100);
  all(spaced, threes, MPI_BOTTOM, MPI_BOTTOM);
  all(MPI_INT, zeros, from.data(), to.data());
  all(MPI_INT, zeros, MPI_BOTTOM, MPI_BOTTOM);
  MPI_Allreduce(MPI_BOTTOM, MPI_BOTTOM, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce(MPI_BOTTOM, MPI_BOTTOM, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce_scatter(MPI_BOTTOM, MPI_BOTTOM, zeros.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce_scatter_block(MPI_BOTTOM, MPI_BOTTOM, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Scan(MPI_BOTTOM, MPI_BOTTOM, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Exscan(MPI_BOTTOM, MPI_BOTTOM, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  test::check(from == std::vector<char>(1000, 'f') && to == std::vector<char>(1000, 't'),
              "nothing is touched");
  MPI_Type_free(&spaced);
}

// Three ints at `at`, and a component without data at `nothing_at`, perhaps before them.
MPI_Datatype hollow_type(MPI_Aint nothing_at, MPI_Aint at) {
  MPI_Datatype nothing, type;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  const int lengths[] = {1, 3};
  const MPI_Aint places[] = {nothing_at, at};
  const MPI_Datatype parts[] = {nothing, MPI_INT};
  MPI_Type_create_struct(2, lengths, places, parts, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&nothing);
  return type;
}

// A broadcast from or to such types; the other side has contiguous ints.
void broadcast_hollow(MPI_Datatype type, std::ptrdiff_t at, bool hollow, const std::string& what) {
  constexpr std::ptrdiff_t origin = 16, length = 48;
  std::vector<int> data(length, -1), expected = data;
  const auto first = expected.begin() + origin + (hollow ? at / std::ptrdiff_t{sizeof(int)} : 0);
  for (int i = 0; i < 3; ++i) first[i] = i + 5;
  if (rank_in_world() == 0) data = expected;
  MPI_Bcast(data.data() + origin, hollow ? 1 : 3, hollow ? type : MPI_INT, 0, MPI_COMM_WORLD);
  test::check(data == expected, what);
}

// The place of a component without data must not change where the data lies.
void run_hollow() {
  for (const MPI_Aint nothing_at : {0, -40, 4, 12, 100}) {
    for (const MPI_Aint at : {8, -20}) {
      MPI_Datatype type = hollow_type(nothing_at, at);
      const bool root = rank_in_world() == 0;
      const std::string places = std::to_string(nothing_at) + " and " + std::to_string(at);
      broadcast_hollow(type, at, root, "from " + places);
      broadcast_hollow(type, at, !root, "to " + places);
      MPI_Type_free(&type);
    }
  }
}

// A user-defined addition of one int, at any place in the type.
void add(void* left, void* right, int* count, MPI_Datatype* type) {
  MPI_Aint start = 0, length = 0;
  MPI_Type_get_true_extent(*type, &start, &length);
  const auto* from = reinterpret_cast<int*>(static_cast<char*>(left) + start);
  auto* const to = reinterpret_cast<int*>(static_cast<char*>(right) + start);
  for (int i = 0; i < *count; ++i) to[i] += from[i];
}

// One int of each rank, all set to this rank's value at first. The type has one int. If `absolute`,
// the type holds the address and the buffer is MPI_BOTTOM.
struct Numbers {
  Numbers(size_t n, int number, bool absolute) : data(n, number) {
    const int one = 1;
    MPI_Aint address = 0;
    MPI_Datatype moved, unit = MPI_INT;
    if (absolute) MPI_Get_address(data.data(), &address);
    MPI_Type_create_struct(1, &one, &address, &unit, &moved);
    MPI_Type_create_resized(moved, address, sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&moved);
    if (!absolute) buffer = data.data();
  }
  ~Numbers() { MPI_Type_free(&type); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  std::vector<int> data;
  MPI_Datatype type{};
  void* buffer = MPI_BOTTOM;
};

// What an in-place call does with the first of these numbers; `all`: with all of them.
struct InPlace {
  const char* name;
  std::function<void(Numbers&)> call;
  int first;
  bool all;
};

std::vector<InPlace> all_in_place(int size, int root, const std::vector<int>& counts,
                                  const std::vector<int>& places, MPI_Op op) {
  void* const here = MPI_IN_PLACE;
  const MPI_Comm world = MPI_COMM_WORLD;
  const int sum = size * (size + 1) / 2, *const n = counts.data(), *const at = places.data();
  const bool is_root = rank_in_world() == root;
  const int rank = rank_in_world(), before = rank == 0 ? 1 : rank * (rank + 1) / 2;
  return {
      {"bcast", [=](Numbers& x) { MPI_Bcast(x.buffer, size, x.type, root, world); }, root + 1,
       true},
      {"allgather",
       [=](Numbers& x) { MPI_Allgather(here, 0, MPI_INT, x.buffer, 1, x.type, world); }, 1, false},
      {"allgatherv",
       [=](Numbers& x) { MPI_Allgatherv(here, 0, MPI_INT, x.buffer, n, at, x.type, world); }, 1,
       false},
      {"gather",
       [=](Numbers& x) {
         MPI_Gather(is_root ? here : x.buffer, 1, is_root ? MPI_INT : x.type, x.buffer, 1, x.type,
                    root, world);
       },
       is_root ? 1 : rank + 1, !is_root},
      {"gatherv",
       [=](Numbers& x) {
         MPI_Gatherv(is_root ? here : x.buffer, 1, is_root ? MPI_INT : x.type, x.buffer, n, at,
                     x.type, root, world);
       },
       is_root ? 1 : rank + 1, !is_root},
      {"scatter",
       [=](Numbers& x) {
         MPI_Scatter(x.buffer, 1, x.type, is_root ? here : x.buffer, 1, is_root ? MPI_INT : x.type,
                     root, world);
       },
       root + 1, is_root},
      {"scatterv",
       [=](Numbers& x) {
         MPI_Scatterv(x.buffer, n, at, x.type, is_root ? here : x.buffer, 1,
                      is_root ? MPI_INT : x.type, root, world);
       },
       root + 1, is_root},
      {"alltoall", [=](Numbers& x) { MPI_Alltoall(here, 0, MPI_INT, x.buffer, 1, x.type, world); },
       1, false},
      {"alltoallv",
       [=](Numbers& x) { MPI_Alltoallv(here, n, at, MPI_INT, x.buffer, n, at, x.type, world); }, 1,
       false},
      {"allreduce", [=](Numbers& x) { MPI_Allreduce(here, x.buffer, size, x.type, op, world); },
       sum, true},
      {"reduce",
       [=](Numbers& x) {
         MPI_Reduce(is_root ? here : x.buffer, x.buffer, size, x.type, op, root, world);
       },
       is_root ? sum : rank_in_world() + 1, true},
      {"scan", [=](Numbers& x) { MPI_Scan(here, x.buffer, size, x.type, op, world); },
       (rank + 1) * (rank + 2) / 2, true},
      {"exscan", [=](Numbers& x) { MPI_Exscan(here, x.buffer, size, x.type, op, world); }, before,
       true},
      {"reduce_scatter",
       [=](Numbers& x) { MPI_Reduce_scatter(here, x.buffer, n, x.type, op, world); }, sum, false},
      {"reduce_scatter_block",
       [=](Numbers& x) { MPI_Reduce_scatter_block(here, x.buffer, 1, x.type, op, world); }, sum,
       false},
  };
}

// One rank alone uses absolute addresses for everything; the others need not know.
void run_absolute() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto n = static_cast<size_t>(size);
  const std::vector<int> counts(n, 1);
  std::vector<int> places(n);
  std::iota(places.begin(), places.end(), 0);
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  for (int who = 0; who < size; ++who) {
    for (const InPlace& each : all_in_place(size, who, counts, places, op)) {
      Numbers numbers(n, rank_in_world() + 1, rank_in_world() == who);
      each.call(numbers);
      const std::vector<int> expected(n, each.first);
      test::check(each.all ? numbers.data == expected : numbers.data[0] == each.first,
                  std::string(each.name) + " with MPI_BOTTOM on rank " + std::to_string(who));
    }
  }
  MPI_Op_free(&op);
}

// Broadcasts the indices 0, 1, ... from rank 0; whether only the type's places have received them.
bool is_told(MPI_Datatype type, int places, int stride) {
  int numbers[16];
  for (int i = 0; i < 16; ++i) numbers[i] = rank_in_world() == 0 ? i : -1;
  MPI_Bcast(numbers, 1, type, 0, MPI_COMM_WORLD);
  for (int i = 0; i < 16 && rank_in_world() != 0; ++i) {
    if (numbers[i] != (i % stride == 0 && i / stride < places ? i : -1)) return false;
  }
  return true;
}

int told_at_the_end = 0;

int tell_at_the_end(MPI_Datatype type, int, void*, void*) {
  told_at_the_end += is_told(type, 4, 2);
  return MPI_SUCCESS;
}

// A type that a delete callback uses while it is freed. The callback's attribute is older or
// younger than Sluice's, which exists from the second use on. Then another type gets the same
// handle.
void run_callbacks() {
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, tell_at_the_end, &keyval, nullptr);
  for (int round = 0; round < 8; ++round) {
    const bool early = round % 2 == 0;
    MPI_Datatype type, next;
    MPI_Type_vector(4, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    if (early) MPI_Type_set_attr(type, keyval, nullptr);
    for (int use = 0; use < 1 + round / 4; ++use) {
      test::check(is_told(type, 4, 2), "a type with an attribute");
    }
    if (!early) MPI_Type_set_attr(type, keyval, nullptr);
    MPI_Type_free(&type);
    test::check(told_at_the_end == round + 1, "a type that is being freed");
    MPI_Type_contiguous(9, MPI_INT, &next);
    MPI_Type_commit(&next);
    test::check(is_told(next, 9, 1), "the next type");
    test::check(is_told(next, 9, 1), "the next type again");
    MPI_Type_free(&next);
  }
  MPI_Type_free_keyval(&keyval);
}

// Wraps a type in another and frees the inner one. Every 4,000th level doubles it, with a gap
// between; other levels keep its size.
MPI_Datatype wrap(MPI_Datatype inner, uint64_t level) {
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(inner, &lower, &extent);
  const int one = 1, zero = 0;
  const MPI_Aint start = 0;
  MPI_Datatype type;
  if (level % 4000 == 0) {
    MPI_Type_vector(2, 1, 2, inner, &type);
  } else if (level % 5 == 0) {
    MPI_Type_contiguous(1, inner, &type);
  } else if (level % 5 == 1) {
    MPI_Type_create_resized(inner, lower, extent, &type);
  } else if (level % 5 == 2) {
    MPI_Type_create_struct(1, &one, &start, &inner, &type);
  } else if (level % 5 == 3) {
    MPI_Type_create_indexed_block(1, 1, &zero, inner, &type);
  } else {
    MPI_Type_create_hvector(1, 1, 0, inner, &type);
  }
  MPI_Type_free(&inner);
  return type;
}

// A stack too small for a recursive call per level.
void limit_stack(rlim_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  setrlimit(RLIMIT_STACK, &limit);
}

void run_deep(uint64_t levels) {
  MPI_Datatype type;
  MPI_Type_dup(MPI_INT, &type);
  size_t ints = 1, span = 1;
  for (uint64_t level = 1; level <= levels; ++level) {
    type = wrap(type, level);
    if (level % 4000 == 0) ints *= 2, span *= 3;
  }
  MPI_Type_commit(&type);
  std::vector<int> numbers(span, -1);
  const bool root = rank_in_world() == 0;
  limit_stack(1 << 20);
  for (int use = 0; use < 3; ++use) {
    if (root) std::iota(numbers.begin(), numbers.end(), use);
    MPI_Bcast(numbers.data(), 1, type, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < span && !root; ++i) {
      bool hole = false;  // its level has a digit 1, to the base 3
      for (size_t rest = i; rest > 0; rest /= 3) hole = hole || rest % 3 == 1;
      test::check(numbers[i] == (hole ? -1 : static_cast<int>(i) + use), "a deep type");
    }
  }
  limit_stack(64 << 20);
  test::check(ints > 1, "some levels hold two of what is below");
  MPI_Type_free(&type);
}

// Alternating blocks of one and two ints, with gaps.
void run_many(size_t blocks) {
  std::vector<int> numbers(3 * blocks, -1);
  MPI_Datatype type;
  {
    std::vector<int> lengths(blocks), places(blocks);
    for (size_t i = 0; i < blocks; ++i) {
      lengths[i] = 1 + static_cast<int>(i % 2);
      places[i] = 3 * static_cast<int>(i);
    }
    MPI_Type_indexed(static_cast<int>(blocks), lengths.data(), places.data(), MPI_INT, &type);
  }
  MPI_Type_commit(&type);
  const bool root = rank_in_world() == 0;
  for (int use = 0; use < 3; ++use) {
    if (root) std::iota(numbers.begin(), numbers.end(), use);
    MPI_Bcast(numbers.data(), 1, type, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < numbers.size() && !root; ++i) {
      const bool hole = i % 3 > i / 3 % 2;
      if (numbers[i] != (hole ? -1 : static_cast<int>(i) + use))
        test::fail("a type of many blocks");
    }
  }
  MPI_Type_free(&type);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  test::check(used.ru_maxrss > 0, "memory is told");
  if (root) std::printf("memory %ld KiB\n", used.ru_maxrss);
}

// Each communicator's first long message of a type that is not dense.
void run_packed() {
  constexpr size_t bytes = size_t{40} << 20;  // mapped by malloc, whatever was freed before
  std::vector<char> memory(2 * bytes, 'g');
  MPI_Datatype type;
  MPI_Type_vector(bytes / 64, 64, 128, MPI_CHAR, &type);
  MPI_Type_commit(&type);
  const size_t before = test::resident_bytes();
  std::vector<MPI_Comm> comms(6);
  for (MPI_Comm& comm : comms) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Bcast(memory.data(), 1, type, 0, comm);
  }
  const size_t after = test::resident_bytes();
  test::check(after < before + bytes,
              "memory grew from " + std::to_string(before) + " to " + std::to_string(after));
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Type_free(&type);
}

// The root sends one row repeatedly, from little memory; the others receive a rectangle.
void run_huge() {
  constexpr int rows = 2200, bytes = 1000000, pitch = bytes + 64;
  const bool root = rank_in_world() == 0;
  MPI_Datatype type;
  std::vector<char> memory(root ? size_t{bytes} : size_t{rows} * pitch, 'g');
  if (root) {
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<char>(i * 31 >> 3);
    MPI_Type_create_hvector(rows, bytes, 0, MPI_CHAR, &type);
  } else {
    const int sizes[] = {rows, pitch}, taken[] = {rows, bytes}, starts[] = {0, 32};
    MPI_Type_create_subarray(2, sizes, taken, starts, MPI_ORDER_C, MPI_CHAR, &type);
  }
  MPI_Type_commit(&type);
  MPI_Bcast(memory.data(), 1, type, 0, MPI_COMM_WORLD);
  MPI_Type_free(&type);
  std::vector<char> row(pitch, 'g');
  for (size_t i = 0; i < bytes; ++i) row[32 + i] = static_cast<char>(i * 31 >> 3);
  for (size_t i = 0; !root && i < rows; ++i) {
    test::check(std::memcmp(memory.data() + i * pitch, row.data(), pitch) == 0,
                "row " + std::to_string(i));
  }
}

void run(const std::string& mode, const test::Options& options) {
  if (mode == "cycles") return run_cycles(options.number("cycles", 10000));
  if (mode == "empty") return run_empty();
  if (mode == "hollow") return run_hollow();
  if (mode == "absolute") return run_absolute();
  if (mode == "callbacks") return run_callbacks();
  if (mode == "deep") return run_deep(options.number("levels", 20000));
  if (mode == "many") return run_many(options.number("blocks", 2000000));
  if (mode == "packed") return run_packed();
  if (mode == "huge") return run_huge();
  test::fail("no such mode: " + mode);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) run(argv[i], options);
  return test::finish("types");
}
