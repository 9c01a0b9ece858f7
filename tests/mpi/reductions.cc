// SPDX-License-Identifier: BSD-3-Clause
//
// reductions [--seed S] [--cases N] [--only FUNCTION] [--bytes MOST] [--pairs 0]: the reducing
// collectives with every predefined type and every operation that MPI defines on it, compared with
// MPI's own function, on several communicators, in place or not. (operations.cc tests user-defined
// operations. fortran.F90 tests Fortran's REAL(16), which some MPI libraries treat as another
// type.)
#include <algorithm>
#include <cstring>

#include "tests/mpi/harness.h"
#include "tests/mpi/numbers.h"

namespace {

using test::Number;
using test::Operation;
using test::Random;
using Bytes = std::vector<std::byte>;

constexpr size_t guard = 64;  // bytes before and after every result

struct Comm {
  MPI_Comm handle;
  int rank, size;
};

Comm describe(MPI_Comm handle) {
  Comm comm{handle, 0, 0};
  MPI_Comm_rank(handle, &comm.rank);
  MPI_Comm_size(handle, &comm.size);
  return comm;
}

std::vector<Comm> all_comms() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm reversed, half;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  return {describe(MPI_COMM_WORLD), describe(reversed), describe(half), describe(MPI_COMM_SELF)};
}

struct Case {
  std::string function;
  Number number;
  Operation op;
  Comm comm;
  int root = 0;
  bool in_place = false;
  std::vector<int> counts;  // of each rank's block; one if there are no blocks
  int total() const {
    int sum = 0;
    for (const int count : counts) sum += count;
    return sum;
  }
};

// The functions, Sluice's or MPI's.
struct Functions {
  decltype(&MPI_Allreduce) allreduce;
  decltype(&MPI_Reduce) reduce;
  decltype(&MPI_Reduce_scatter) reduce_scatter;
  decltype(&MPI_Reduce_scatter_block) reduce_scatter_block;
  decltype(&MPI_Scan) scan;
  decltype(&MPI_Exscan) exscan;
};

void call(const Functions& functions, const Case& c, const void* from, void* to) {
  const int total = c.total();
  if (c.function == "allreduce") {
    functions.allreduce(from, to, total, c.number.handle, c.op.handle, c.comm.handle);
  } else if (c.function == "reduce") {
    functions.reduce(from, to, total, c.number.handle, c.op.handle, c.root, c.comm.handle);
  } else if (c.function == "reduce_scatter") {
    functions.reduce_scatter(from, to, c.counts.data(), c.number.handle, c.op.handle,
                             c.comm.handle);
  } else if (c.function == "reduce_scatter_block") {
    functions.reduce_scatter_block(from, to, c.counts[0], c.number.handle, c.op.handle,
                                   c.comm.handle);
  } else {
    const auto function = c.function == "scan" ? functions.scan : functions.exscan;
    function(from, to, total, c.number.handle, c.op.handle, c.comm.handle);
  }
}

// A result buffer between two guards, with its content before the call, in place or not.
Bytes prepare(const Case& c, const Bytes& input) {
  Bytes result(guard, std::byte{0x5a});
  const Bytes content = c.in_place ? input : Bytes(input.size());
  result.insert(result.end(), content.begin(), content.end());
  result.resize(result.size() + guard, std::byte{0x5a});
  return result;
}

// The expected bytes: MPI's result where MPI defines a value, and `before` in gaps. (In place,
// memory after the result may be used as scratch, but its gaps must not change.)
Bytes expect(const Case& c, const Bytes& before, const Bytes& ours, Bytes theirs) {
  const bool scatters = c.function.starts_with("reduce_scatter");
  const int total = c.total();
  const int defined = c.in_place && scatters ? c.counts[static_cast<size_t>(c.comm.rank)] : total;
  const auto at = [&](int i) {
    return static_cast<ptrdiff_t>(guard + static_cast<size_t>(i) * c.number.extent);
  };
  std::copy(ours.begin() + at(defined), ours.begin() + at(total), theirs.begin() + at(defined));
  for (int i = 0; i < total; ++i) {
    for (const auto& [begin, end] : c.number.gaps()) {
      std::copy_n(before.begin() + at(i) + static_cast<ptrdiff_t>(begin), end - begin,
                  theirs.begin() + at(i) + static_cast<ptrdiff_t>(begin));
    }
  }
  return theirs;
}

void compare(const Case& c, const Bytes& before, Bytes ours, Bytes theirs) {
  theirs = expect(c, before, ours, std::move(theirs));
  for (Bytes* bytes : {&ours, &theirs}) {
    for (int i = 0; i < c.total(); ++i) {
      c.number.clear_padding(bytes->data() + guard + static_cast<size_t>(i) * c.number.extent);
    }
  }
  const auto [mine, other] = std::ranges::mismatch(ours, theirs);
  const bool equal = mine == ours.end();
  const std::string where =
      equal ? "" : std::to_string(mine - ours.begin() - static_cast<ptrdiff_t>(guard));
  test::check(equal, c.function + " " + c.op.name + " of " + std::to_string(c.total()) + " " +
                         c.number.name + " on " + std::to_string(c.comm.size) + " ranks" +
                         (c.in_place ? ", in place" : "") + ": differs at byte " + where);
  test::check(
      std::all_of(ours.end() - guard, ours.end(), [](std::byte b) { return b == std::byte{0x5a}; }),
      c.function + " wrote behind its result");
}

// The elements of an operand, with random bytes in their gaps.
Bytes draw_input(const Case& c, Random& random) {
  const size_t extent = c.number.extent, total = static_cast<size_t>(c.total());
  Bytes input(total * extent);
  for (size_t at = 0; at < input.size(); at += extent) {
    c.number.draw(c.op.handle, input.data() + at, c.comm.rank, random);
    for (const auto& [begin, end] : c.number.gaps()) {
      for (size_t i = begin; i < end; ++i) input[at + i] = static_cast<std::byte>(random.next());
    }
  }
  return input;
}

void run(const Case& c, Random& random) {
  static const Functions ours = {MPI_Allreduce,      PMPI_Reduce,
                                 MPI_Reduce_scatter, PMPI_Reduce_scatter_block,
                                 MPI_Scan,           MPI_Exscan};
  static const Functions theirs = {IN_MPI(MPI_Allreduce),      IN_MPI(MPI_Reduce),
                                   IN_MPI(MPI_Reduce_scatter), IN_MPI(MPI_Reduce_scatter_block),
                                   IN_MPI(MPI_Scan),           IN_MPI(MPI_Exscan)};
  const Bytes input = draw_input(c, random), before = input, result = prepare(c, input);
  Bytes mine = result, expected = result;
  const bool in_place = c.in_place && (c.function != "reduce" || c.comm.rank == c.root);
  const void* const from = in_place ? MPI_IN_PLACE : input.data();
  call(ours, c, from, mine.data() + guard);
  // Never in place: MPICH 4.0.2's own MPI_Reduce crashes there.
  call(theirs, c, input.data(), expected.data() + guard);
  compare(c, result, std::move(mine), std::move(expected));
  test::check(input == before, c.function + " changed its input");
}

class Reductions {
 public:
  Reductions(uint64_t seed, size_t most_bytes)
      : most_bytes_(most_bytes), cases_(seed), comms_(all_comms()), numbers_(test::all_numbers()) {}

  // Every type with every operation on it.
  void run_all_pairs(const std::string& function) {
    for (const Number& number : numbers_) {
      for (const Operation& op : test::operations_on(number)) run_one(function, &number, &op);
    }
  }
  void run_random(const std::string& function) { run_one(function, nullptr, nullptr); }

 private:
  void run_one(const std::string& function, const Number* number, const Operation* op) {
    const uint64_t seed = cases_.next();
    Random shared(seed);
    int world = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    Random own(seed + 1 + static_cast<uint64_t>(world));
    const Number& drawn = shared.pick(numbers_);
    Case c{function, number ? *number : drawn, {}, comms_[0], 0, false, {}};
    c.op = op ? *op : shared.pick(test::operations_on(c.number));
    if (!op) c.comm = shared.pick(comms_);
    c.in_place = shared.chance(3);
    c.root = static_cast<int>(shared.below(static_cast<size_t>(c.comm.size)));
    const bool blocks = function.starts_with("reduce_scatter");
    const bool uneven = function == "reduce_scatter" && shared.chance(2);
    for (int i = 0; i < (blocks ? c.comm.size : 1); ++i) {
      c.counts.push_back(i == 0 || uneven ? draw_count(c, shared) : c.counts[0]);
    }
    run(c, own);
  }

  int draw_count(const Case& c, Random& shared) const {
    const int count = shared.pick<int>({0, 1, 1, 2, 3, 5, 7, 16, 31, 64, 101, 1000, 4099, 65536});
    return std::min(count, static_cast<int>(most_bytes_ / c.number.extent));
  }

  size_t most_bytes_;
  Random cases_;
  std::vector<Comm> comms_;
  std::vector<Number> numbers_;
};

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const uint64_t seed = test::agree_on_seed(options);
  const std::string only = options.text("only", "");
  Reductions reductions(seed, options.number("bytes", 1 << 20));
  for (const char* function :
       {"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"}) {
    if (!only.empty() && only != function) continue;
    if (options.number("pairs", 1)) reductions.run_all_pairs(function);
    for (uint64_t i = 0; i < options.number("cases", 100); ++i) reductions.run_random(function);
  }
  return test::finish("reductions");
}
