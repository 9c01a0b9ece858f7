// SPDX-License-Identifier: BSD-3-Clause
//
// operations [--seed S] [--cases N] [--only FUNCTION] [--bytes MOST]: the reducing collectives with
// user-defined operations, on types of every layout, compared with a serial loop over the ranks.
// Also pairs of type and operation that MPI does not define: errors must be MPI's own.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/mpi/harness.h"

namespace {

using test::Random;

// An element is the function x -> a x + b, modulo 2^32. Composition is associative and does not
// commute. Component-wise product and sum commute.
struct Map {
  uint32_t a, b;
  bool operator==(const Map&) const = default;
};
Map compose(const Map& first, const Map& then) {
  return {first.a * then.a, first.b * then.a + then.b};
}
Map by_component(const Map& x, const Map& y) { return {x.a * y.a, x.b + y.b}; }

// The byte offsets of a and b in an element.
struct Layout {
  const char* name;
  MPI_Datatype handle;
  std::ptrdiff_t a, b, extent;
  bool predefined = false;
};

std::vector<Layout>& layouts() {
  static std::vector<Layout> all;
  return all;
}

MPI_Datatype placed(const Layout& layout) {
  int lengths[] = {1, 1};
  MPI_Aint places[] = {layout.a, layout.b};
  MPI_Datatype type, resized;
  MPI_Type_create_hindexed(2, lengths, places, MPI_UNSIGNED, &type);
  MPI_Type_create_resized(type, std::min(layout.a, layout.b), layout.extent, &resized);
  MPI_Type_commit(&resized);
  MPI_Type_free(&type);
  return resized;
}

void make_layouts() {
  layouts() = {{"dense", {}, 0, 4, 8},
               {"spaced", {}, 0, 8, 12},
               {"wide", {}, 0, 4, 24},
               {"reversed", {}, 4, 0, 8},
               {"below zero", {}, -8, 4, 16},
               {"above zero", {}, 8, 12, 8},
               {"predefined", MPI_2INT, 0, 4, 8, true}};
  for (Layout& layout : layouts()) {
    if (!layout.predefined) layout.handle = placed(layout);
  }
}

void free_layouts() {
  for (Layout& layout : layouts()) {
    if (!layout.predefined) MPI_Type_free(&layout.handle);
  }
}

uint32_t* address(void* base, std::ptrdiff_t offset) {
  return reinterpret_cast<uint32_t*>(static_cast<std::byte*>(base) + offset);
}
Map get(const Layout& layout, void* base, std::ptrdiff_t i) {
  return {*address(base, i * layout.extent + layout.a),
          *address(base, i * layout.extent + layout.b)};
}
void put(const Layout& layout, void* base, std::ptrdiff_t i, const Map& map) {
  *address(base, i * layout.extent + layout.a) = map.a;
  *address(base, i * layout.extent + layout.b) = map.b;
}

// A user-defined operation may call MPI, collectives included.
void call_mpi_inside() {
  static int calls = 0;
  if (++calls % 64 != 1) return;
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  test::check(sum == 1, "a collective inside an operation");
}

void apply(Map (*combine)(const Map&, const Map&), void* left, void* right, int n,
           MPI_Datatype type) {
  const auto layout = std::find_if(layouts().begin(), layouts().end(),
                                   [&](const Layout& each) { return each.handle == type; });
  test::check(layout != layouts().end(), "an operation is called with the program's own type");
  for (int i = 0; i < n; ++i) {
    put(*layout, right, i, combine(get(*layout, left, i), get(*layout, right, i)));
  }
  call_mpi_inside();
}
void compose_all(void* left, void* right, int* n, MPI_Datatype* type) {
  apply(compose, left, right, *n, *type);
}
void combine_all(void* left, void* right, int* n, MPI_Datatype* type) {
  apply(by_component, left, right, *n, *type);
}

struct Case {
  std::string function;
  Layout layout;  // this rank's
  bool commutes = false, in_place = false;
  int root = 0, rank = 0, size = 1;
  MPI_Comm comm = MPI_COMM_WORLD;
  std::vector<int> counts = {};  // of each rank's block; one if there are no blocks
  uint64_t seed = 0;

  bool scatters() const { return function.starts_with("reduce_scatter"); }
  int total() const { return before(static_cast<int>(counts.size())); }
  int before(int block) const {
    int sum = 0;
    for (int i = 0; i < block; ++i) sum += counts[static_cast<size_t>(i)];
    return sum;
  }
  Map operand(int of, int index) const {
    Random random(seed ^ (static_cast<uint64_t>(of) << 32 | static_cast<uint64_t>(index)));
    const uint64_t bits = random.next();
    return {static_cast<uint32_t>(bits) | 1, static_cast<uint32_t>(bits >> 32)};
  }
  // How many ranks' operands are in this rank's result: 0 where it gets none.
  int operands() const {
    if (function == "reduce") return rank == root ? size : 0;
    if (function == "scan") return rank + 1;
    return function == "exscan" ? rank : size;
  }
  Map result(int index) const {
    Map map = operand(0, index);
    for (int of = 1; of < operands(); ++of) {
      map = (commutes ? by_component : compose)(map, operand(of, index));
    }
    return map;
  }
};

// Memory for n elements in a layout, with guards before and after and the gaps between.
class Memory {
 public:
  Memory(const Layout& layout, int n)
      : layout_(layout),
        bytes_((margin * 2 + static_cast<size_t>(n * layout.extent)) / 4, 0x5a5a) {}
  void* base() { return address(bytes_.data(), margin); }
  Map at(int i) { return get(layout_, base(), i); }
  void set(int i, const Map& map) { put(layout_, base(), i, map); }
  bool operator==(const Memory& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr size_t margin = 64;
  Layout layout_;
  std::vector<uint32_t> bytes_;
};

void call(const Case& c, MPI_Op op, const void* from, void* to) {
  const MPI_Datatype type = c.layout.handle;
  if (c.function == "allreduce") {
    MPI_Allreduce(from, to, c.total(), type, op, c.comm);
  } else if (c.function == "reduce") {
    MPI_Reduce(from, to, c.total(), type, op, c.root, c.comm);
  } else if (c.function == "reduce_scatter") {
    MPI_Reduce_scatter(from, to, c.counts.data(), type, op, c.comm);
  } else if (c.function == "reduce_scatter_block") {
    MPI_Reduce_scatter_block(from, to, c.counts[0], type, op, c.comm);
  } else {
    (c.function == "scan" ? MPI_Scan : MPI_Exscan)(from, to, c.total(), type, op, c.comm);
  }
}

void run(const Case& c) {
  MPI_Op op;
  MPI_Op_create(c.commutes ? combine_all : compose_all, c.commutes, &op);
  Memory input(c.layout, c.total()), output(c.layout, c.total()), expected(c.layout, c.total());
  const bool in_place = c.in_place && (c.function != "reduce" || c.rank == c.root);
  for (int i = 0; i < c.total(); ++i) input.set(i, c.operand(c.rank, i));
  if (in_place) output = expected = input;
  const Memory before = input;
  call(c, op, in_place ? MPI_IN_PLACE : input.base(), output.base());
  MPI_Op_free(&op);

  const int first = c.scatters() ? c.before(c.rank) : 0;
  const int own = c.scatters() ? c.counts[static_cast<size_t>(c.rank)] : c.total();
  const bool gets = c.operands() > 0;
  // In place, memory after a scattered result may be used as scratch.
  for (int i = own; in_place && i < c.total(); ++i) expected.set(i, output.at(i));
  for (int i = 0; gets && i < own; ++i) expected.set(i, c.result(first + i));
  const std::string what = c.function + " of " + std::to_string(c.total()) + " " + c.layout.name +
                           " elements on " + std::to_string(c.size) + " ranks" +
                           (c.commutes ? "" : " in order") + (in_place ? ", in place" : "");
  test::check(output == expected, what + ": the result");
  test::check(input == before, what + ": changes its input");
}

class Operations {
 public:
  Operations(uint64_t seed, size_t most_bytes) : most_bytes_(most_bytes), cases_(seed) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed_);
  }
  ~Operations() { MPI_Comm_free(&reversed_); }

  void run_one(const std::string& function) {
    Random shared(cases_.next());
    Case c{function, {}};
    c.seed = shared.next();
    c.comm = shared.chance(2) ? MPI_COMM_WORLD : reversed_;
    MPI_Comm_rank(c.comm, &c.rank);
    MPI_Comm_size(c.comm, &c.size);
    c.commutes = shared.chance(3);
    c.in_place = shared.chance(3);
    c.root = static_cast<int>(shared.below(static_cast<size_t>(c.size)));
    // The signature is common; the layout may differ between ranks.
    const bool mixed = shared.chance(4);
    c.layout =
        layouts()[(shared.next() + (mixed ? static_cast<size_t>(c.rank) : 0)) % layouts().size()];
    const bool uneven = function == "reduce_scatter" && shared.chance(2);
    for (int i = 0; i < (c.scatters() ? c.size : 1); ++i) {
      c.counts.push_back(i == 0 || uneven ? draw_count(shared) : c.counts[0]);
    }
    run(c);
  }

 private:
  int draw_count(Random& shared) const {
    const int count = shared.pick<int>({0, 1, 1, 2, 3, 5, 16, 101, 1000, 4099, 20000, 65536});
    return std::min(count, static_cast<int>(most_bytes_ / sizeof(Map)));
  }

  size_t most_bytes_;
  Random cases_;
  MPI_Comm reversed_;
};

// Freed handles are reused: a new operation must not be mistaken for the old one.
void check_handles_used_again() {
  const Layout& dense = layouts()[0];
  for (int i = 0; i < 20; ++i) {
    Case c{"allreduce", dense};
    MPI_Comm_rank(c.comm, &c.rank);
    MPI_Comm_size(c.comm, &c.size);
    c.commutes = i % 2 != 0;
    c.counts = {3};
    c.seed = static_cast<uint64_t>(i);
    run(c);
  }
}

int class_of(int error) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(error, &error_class);
  return error_class;
}

// MPI must raise the error for what it does not define.
void check_errors() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const struct {
    const char* what;
    MPI_Datatype type;
    MPI_Op op;
  } wrong[] = {
      {"a sum of a derived type", layouts()[0].handle, MPI_SUM},
      {"a sum of bytes", MPI_BYTE, MPI_SUM},
      {"a location in int", MPI_INT, MPI_MINLOC},
      {"bits of double", MPI_DOUBLE, MPI_BAND},
      {"the null operation", MPI_INT, MPI_OP_NULL},
  };
  for (const auto& each : wrong) {
    uint32_t from[16] = {}, to[16] = {};
    const int ours = class_of(MPI_Allreduce(from, to, 1, each.type, each.op, comm));
    const int theirs = class_of(IN_MPI(MPI_Allreduce)(from, to, 1, each.type, each.op, comm));
    test::check(ours == theirs, std::string(each.what) + ": error class " + std::to_string(ours) +
                                    ", in MPI " + std::to_string(theirs));
  }
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const uint64_t seed = test::agree_on_seed(options);
  const std::string only = options.text("only", "");
  make_layouts();
  {
    Operations operations(seed, options.number("bytes", 1 << 20));
    for (const char* function :
         {"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"}) {
      if (!only.empty() && only != function) continue;
      for (uint64_t i = 0; i < options.number("cases", 100); ++i) operations.run_one(function);
    }
  }
  check_handles_used_again();
  check_errors();
  free_layouts();
  return test::finish("operations");
}
