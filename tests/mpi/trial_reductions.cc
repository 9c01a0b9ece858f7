// SPDX-License-Identifier: BSD-3-Clause
//
// Trials of the reducing collectives: predefined operations on predefined types with arbitrary
// values (rounding.h bounds the rounding errors), and user-defined operations, commutative or not,
// on types of all constructions.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>

#include "tests/mpi/narrow.h"
#include "tests/mpi/numbers.h"
#include "tests/mpi/rounding.h"
#include "tests/mpi/trial.h"

namespace test {
namespace {

// The types to which user-defined operations are applied, by handle. (Of a type that the program
// has freed, too, while a call in flight uses it.)
std::map<MPI_Datatype, ShapedType> reduced_types;

// Whether rank 0 of an exclusive scan may give no buffer for the result that it doesn't get. (MPICH
// has an error for that.)
#ifdef OPEN_MPI
constexpr bool null_in_exscan = true;
#else
constexpr bool null_in_exscan = false;
#endif

using Map = std::vector<Segment>;

uint64_t load(const std::byte* at, size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

void store(std::byte* at, size_t bytes, uint64_t value) { std::memcpy(at, &value, bytes); }

// Calls `each` with the type map and the two operands of every element, at the map's origin. (The
// type may use absolute addresses.)
template <typename Each>
void for_elements(void* left, void* right, const int* count, const MPI_Datatype* type, Each each) {
  const auto found = reduced_types.find(*type);
  if (found == reduced_types.end()) fail("an operation on another type");
  const ShapedType& reduced = found->second;
  int size = 0;
  MPI_Type_size(*type, &size);
  if (static_cast<size_t>(size) != reduced.size()) fail("an operation on a type that has changed");
  MPI_Aint lower = 0, plain_lower = 0, extent = 0;
  MPI_Type_get_extent(*type, &lower, &extent);
  MPI_Type_get_extent(reduced.handle, &plain_lower, &extent);
  for (int i = 0; i < *count; ++i) {
    const ptrdiff_t at = lower - plain_lower + i * reduced.extent;
    each(reduced.map, static_cast<std::byte*>(left) + at, static_cast<std::byte*>(right) + at);
  }
}

// Adds units; commutative.
void add(void* left, void* right, int* count, MPI_Datatype* type) {
  for_elements(left, right, count, type, [](const Map& map, const std::byte* a, std::byte* b) {
    for (const Segment& unit : map) {
      store(b + unit.at, unit.bytes, load(a + unit.at, unit.bytes) + load(b + unit.at, unit.bytes));
    }
  });
}

void keep_left(void* left, void* right, int* count, MPI_Datatype* type) {
  for_elements(left, right, count, type, [](const Map& map, const std::byte* a, std::byte* b) {
    for (const Segment& unit : map) std::memcpy(b + unit.at, a + unit.at, unit.bytes);
  });
}

// A pair of units (m, n) is the function m x + n; composes them. A single last unit keeps the right
// operand.
void compose(void* left, void* right, int* count, MPI_Datatype* type) {
  for_elements(left, right, count, type, [](const Map& map, const std::byte* a, std::byte* b) {
    for (size_t i = 0; i + 1 < map.size(); i += 2) {
      const Segment m = map[i], n = map[i + 1];
      const uint64_t factor = load(a + m.at, m.bytes);
      store(b + n.at, n.bytes, factor * load(b + n.at, n.bytes) + load(a + n.at, n.bytes));
      store(b + m.at, m.bytes, factor * load(b + m.at, m.bytes));
    }
  });
}

class Reducer {
 public:
  explicit Reducer(Trial& trial) : trial_(trial) {}
  Rest run_predefined();
  Rest run_user_defined();
  // Sums, products, minima and maxima of small integers in 16-bit formats.
  Rest run_narrow();

 private:
  struct Task {
    MPI_Op ours, theirs;
    const Number* number = nullptr;                           // only predefined types
    std::function<void(Memory* memory, size_t n)> fill = {};  // empty: any bytes will do
  };
  void draw_counts(size_t element_bytes);
  // MPI computes on `dense`, which has the same signature, because Open MPI's own buffers for types
  // with gaps may be wrong.
  Rest run(ShapedType type, ShapedType dense, const Task& task);
  void make_sides(ShapedType type, const ShapedType& dense, const Task& task);
  void finish(const ShapedType& dense, const Task& task);
  template <typename All, typename Scan, typename Exscan, typename One, typename Scatter,
            typename ScatterBlock>
  void call(Phase in, All all, Scan scan, Exscan exscan, One one, Scatter scatter,
            ScatterBlock scatter_block, const void* from, const Words& to, MPI_Op op);
  void call_ours(Side* input, Side* output, MPI_Op op);
  void call_theirs(Side* input, Side* output, MPI_Op op);
  void paint(Side* output, const Number* number) const;
  void compare(const Number& number, MPI_Op op, Side* input, Side* output);
  // After an allreduce all ranks must have the same bits.
  void compare_ranks(Side* output);

  // MPI_Scan or MPI_Exscan: rank r gets what ranks up to r have.
  bool is_prefix() const { return trial_.function.ends_with("can"); }
  bool scatters() const { return trial_.function.starts_with("MPI_Reduce_scatter"); }
  bool in_place() const {
    return trial_.in_place && (trial_.function != "MPI_Reduce" || trial_.is_root());
  }
  size_t total() const { return std::accumulate(counts_.begin(), counts_.end(), size_t{0}); }
  // How many elements of the result this rank gets, and the index of the first.
  size_t own() const;
  bool has_result() const;
  size_t first() const;

  Trial& trial_;
  std::vector<int> counts_;  // of each rank's block; one if there are no blocks
  std::unique_ptr<Side> input_, output_;
};

size_t Reducer::own() const {
  if (scatters()) return static_cast<size_t>(counts_[trial_.me()]);
  return has_result() ? total() : 0;
}

bool Reducer::has_result() const {
  if (trial_.function == "MPI_Exscan") return trial_.comm.rank > 0;
  return trial_.function != "MPI_Reduce" || trial_.is_root();
}

size_t Reducer::first() const {
  return scatters()
             ? std::accumulate(counts_.begin(), counts_.begin() + trial_.comm.rank, size_t{0})
             : 0;
}

void Reducer::draw_counts(size_t element_bytes) {
  const bool vector = trial_.function == "MPI_Reduce_scatter", holes = trial_.shared.chance(3);
  const size_t blocks = scatters() ? trial_.size() : 1;
  size_t most = trial_.most_bytes / element_bytes / blocks;
  if (!trial_.shared.chance(40)) most = std::min<size_t>(most, 65536);
  for (size_t i = 0; i < blocks; ++i) {
    const size_t small[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 101, 255};
    const size_t large[] = {1000, 1024, 4099, 8192, 20011, 65536, 1 << 20};
    size_t n =
        trial_.shared.chance(3) ? large[trial_.shared.below(7)] : small[trial_.shared.below(14)];
    if (vector && holes && trial_.shared.chance(2)) n = 0;
    if (!vector && i > 0) n = static_cast<size_t>(counts_[0]);
    counts_.push_back(static_cast<int>(std::min(n, most)));
  }
}

Rest Reducer::run_predefined() {
  static const std::vector<Number> numbers = all_numbers();
  const Number& number = trial_.shared.pick(numbers);
  const Operation op = trial_.shared.pick(operations_on(number));
  draw_counts(number.extent);
  trial_.story += std::string("; ") + op.name + " of " + number.name;
  ShapedType type{number.handle, value_bytes(number), static_cast<ptrdiff_t>(number.extent), true,
                  number.name};
  const ShapedType alike = type;
  const auto fill = [&](Memory* memory, size_t n) {
    draw_values(number, op.handle, memory, n, trial_.own);
  };
  return run(std::move(type), alike, {op.handle, op.handle, &number, fill});
}

Rest Reducer::run_user_defined() {
  struct UserOp {
    MPI_User_function* function;
    int commutes;
    const char* name;
  };
  const UserOp ops[] = {{add, 1, "own addition"},
                        {add, 0, "own addition, said not to commute"},
                        {keep_left, 0, "own, the left"},
                        {compose, 0, "own, composed"}};
  const Unit units[] = {{MPI_INT, {{0, 4}}, 4},
                        {MPI_CHAR, {{0, 1}}, 1},
                        {MPI_INT16_T, {{0, 2}}, 2},
                        {MPI_UINT64_T, {{0, 8}}, 8}};
  trial_.has_own_operation = true;
  if (trial_.in_flight && !has_hook()) trial_.tame();
  const UserOp& drawn = ops[trial_.shared.below(4)];
  const Unit& unit = units[trial_.shared.below(4)];
  const size_t per_element = trial_.shared.pick<size_t>({1, 2, 2, 3, 4, 6, 20});
  draw_counts(unit.size() * per_element * 3);
  // MPI requires the same type on all ranks.
  ShapedType type = trial_.is_tame ? contiguous_type(unit, per_element)
                                   : draw_type(unit, per_element, total() + 1, trial_.shared);
  trial_.story += std::string("; ") + drawn.name + " on " + type.construction;
  MPI_Op ours, theirs;
  MPI_Op_create(drawn.function, drawn.commutes, &ours);
  MPI_Op_create(drawn.function, drawn.commutes, &theirs);
  ShapedType dense = contiguous_type(unit, per_element);
  const Rest rest = run(std::move(type), dense, {ours, theirs});
  if (trial_.frees) MPI_Op_free(&ours);
  return [=]() mutable {
    rest();
    free_type(&dense);
    MPI_Op_free(&theirs);
    if (ours != MPI_OP_NULL) MPI_Op_free(&ours);
  };
}

// Computes for MPI what Sluice does on its 16-bit types: MPI gets the bits as integers. (An MPI
// operation has no context argument.)
const NarrowFormat* narrow = nullptr;
int (*combine_narrow)(int, int) = nullptr;

void combine_bits(void* left, void* right, int* count, MPI_Datatype*) {
  const auto* from = static_cast<const uint16_t*>(left);
  auto* const to = static_cast<uint16_t*>(right);
  for (int i = 0; i < *count; ++i) {
    to[i] = narrow->encode(combine_narrow(narrow->decode(from[i]), narrow->decode(to[i])));
  }
}

Rest Reducer::run_narrow() {
  struct NarrowOp {
    MPI_Op op;
    int (*combine)(int, int);
    const char* name;
  };
  const NarrowOp ops[] = {{MPI_SUM, [](int a, int b) { return a + b; }, "sum"},
                          {MPI_PROD, [](int a, int b) { return a * b; }, "product"},
                          {MPI_MIN, [](int a, int b) { return std::min(a, b); }, "minimum"},
                          {MPI_MAX, [](int a, int b) { return std::max(a, b); }, "maximum"}};
  static const std::vector<NarrowFormat> formats = narrow_formats();
  const NarrowFormat& format = trial_.shared.pick(formats);
  const NarrowOp drawn = ops[trial_.shared.below(4)];
  draw_counts(2);
  trial_.story += std::string("; ") + drawn.name + " of " + format.name;
  // Exact on eight ranks.
  const auto fill = [&](Memory* memory, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const int number = static_cast<int>(trial_.own.below(33)) - 16, small = number < 0 ? -2 : 1;
      const uint16_t bits = format.encode(drawn.op == MPI_PROD ? small : number);
      std::memcpy(memory->element(0, i), &bits, sizeof bits);
    }
  };
  const ShapedType type{format.type, {{0, 2}}, 2, true, format.name};
  const ShapedType bits{MPI_UINT16_T, {{0, 2}}, 2, true, "bits"};
  MPI_Op op;
  MPI_Op_create(combine_bits, 1, &op);
  const Rest rest = run(type, bits, {drawn.op, op, nullptr, fill});
  return [=, &format]() mutable {
    narrow = &format;
    combine_narrow = drawn.combine;
    rest();
    MPI_Op_free(&op);
  };
}

template <typename All, typename Scan, typename Exscan, typename One, typename Scatter,
          typename ScatterBlock>
void Reducer::call(Phase in, All all, Scan scan, Exscan exscan, One one, Scatter scatter,
                   ScatterBlock scatter_block, const void* from, const Words& to, MPI_Op op) {
  phase = in;
  const int count = static_cast<int>(total());
  const MPI_Comm comm = trial_.comm_in(in);
  if (trial_.function == "MPI_Reduce") {
    one(from, to.buffer, count, to.type, op, trial_.root, comm);
  } else if (trial_.function == "MPI_Reduce_scatter") {
    scatter(from, to.buffer, Array<MPI_Count>(counts_), to.type, op, comm);
  } else if (scatters()) {
    scatter_block(from, to.buffer, counts_[0], to.type, op, comm);
  } else if (trial_.function == "MPI_Scan") {
    scan(from, to.buffer, count, to.type, op, comm);
  } else if (is_prefix()) {
    exscan(from, to.buffer, count, to.type, op, comm);
  } else {
    all(from, to.buffer, count, to.type, op, comm);
  }
}

void Reducer::call_ours(Side* input, Side* output, MPI_Op op) {
  const Words from = input->ours();
  Words to = output->ours();
  const bool without = !has_result() && !in_place() && (null_in_exscan || !is_prefix()) &&
                       !trial_.is_tame && trial_.own.chance(2);
  if (without) to.buffer = nullptr;
  if (trial_.has_own_operation) {
    to = lend(trial_, to);
    reduced_types[to.type] = output->type;
  }
  const void* const data = in_place() ? MPI_IN_PLACE : from.buffer;
  call(Phase::in_sluice, OURS(trial_, MPI_Allreduce, MPI_Iallreduce),
       OURS(trial_, MPI_Scan, MPI_Iscan), OURS(trial_, MPI_Exscan, MPI_Iexscan),
       OURS(trial_, MPI_Reduce, MPI_Ireduce), OURS(trial_, MPI_Reduce_scatter, MPI_Ireduce_scatter),
       OURS(trial_, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block), data, to, op);
}

// Never in place: MPICH 4.0.2's own MPI_Reduce crashes there.
void Reducer::call_theirs(Side* input, Side* output, MPI_Op op) {
  call(Phase::in_mpi, IN_MPI(MPI_Allreduce), IN_MPI(MPI_Scan), IN_MPI(MPI_Exscan),
       IN_MPI(MPI_Reduce), IN_MPI(MPI_Reduce_scatter), IN_MPI(MPI_Reduce_scatter_block),
       input->untouched().buffer, output->theirs(), op);
  phase = Phase::comparing;
  output->take_theirs();
}

// Bytes that may get any value: the padding of long doubles, and in place the memory after the
// result.
void Reducer::paint(Side* output, const Number* number) const {
  const size_t elements = output->blocks[0].count;
  const auto paint = [&](size_t n, Fate fate, const std::vector<Segment>& where) {
    output->before.paint(0, 0, n, fate, where, &output->fates);
  };
  if (number && own() > 0) {
    paint(elements, Fate::any, {{0, number->extent}});
    for (const auto& [begin, end] : number->gaps()) {
      paint(elements, Fate::kept, {{static_cast<ptrdiff_t>(begin), end - begin}});
    }
  }
  if (in_place() && has_result()) paint(elements, Fate::any, output->type.map);
  paint(own(), Fate::defined, output->type.map);
}

void Reducer::make_sides(ShapedType type, const ShapedType& dense, const Task& task) {
  ShapedType alike = type;
  if (!type.predefined) MPI_Type_dup(type.handle, &alike.handle);
  const size_t count = total();
  const MPI_Datatype in_mpi = task.number ? MPI_DATATYPE_NULL : dense.handle;
  input_ = std::make_unique<Side>(std::move(type), std::vector<Memory::Block>{{0, count}}, in_mpi,
                                  trial_);
  if (task.fill) task.fill(&input_->before, count);
  input_->settle();
  const std::vector<Memory::Block> results{{0, in_place() ? count : own()}};
  output_ = std::make_unique<Side>(std::move(alike), results, in_mpi, trial_);
  if (!in_place()) return;
  for (size_t i = 0; i < count; ++i) {
    for (const Segment& unit : output_->type.map) {
      std::memcpy(output_->before.element(0, i) + unit.at, input_->before.element(0, i) + unit.at,
                  unit.bytes);
    }
  }
  output_->settle();
  if (!task.number && !output_->type.predefined && !trial_.is_tame && trial_.own.chance(4))
    output_->use_absolute_addresses();
}

Rest Reducer::run(ShapedType type, ShapedType dense, const Task& task) {
  for (const int n : counts_) trial_.story += " " + std::to_string(n);
  make_sides(std::move(type), dense, task);
  call_ours(input_.get(), output_.get(), task.ours);
  return [this, dense, task] { finish(dense, task); };
}

void Reducer::finish(const ShapedType& dense, const Task& task) {
  const Number* const number = task.number;
  input_->take_ours();
  output_->take_ours();
  if (trial_.has_own_operation) reduced_types[dense.handle] = dense;
  call_theirs(input_.get(), output_.get(), task.theirs);
  paint(output_.get(), number);
  damage(trial_, input_.get(), output_.get());
  input_->verify(trial_, "the input", true);
  const bool rounds = number && is_rounded(*number);
  output_->verify(trial_, "the result", !rounds);
  if (rounds) compare(*number, task.ours, input_.get(), output_.get());
  if (trial_.function == "MPI_Allreduce") compare_ranks(output_.get());
}

void Reducer::compare(const Number& number, MPI_Op op, Side* input, Side* output) {
  const auto combine = trial_.function == "MPI_Scan" ? IN_MPI(MPI_Scan)
                       : is_prefix()                 ? IN_MPI(MPI_Exscan)
                                                     : IN_MPI(MPI_Allreduce);
  const std::vector<long double> sums =
      sums_of_magnitudes(number, op, &input->before, total(), combine, trial_.comm.in_mpi);
  for (size_t i = 0; i < own(); ++i) {
    const std::string difference = difference_beyond_rounding(
        number, op, trial_.comm.size, sums, first() + i, output->our_memory.element(0, i),
        output->their_memory.element(0, i));
    if (!difference.empty()) {
      trial_.complain("element " + std::to_string(i) + " of the result: " + difference);
    }
  }
}

void Reducer::compare_ranks(Side* output) {
  if (trial_.damage == Damage::bits && trial_.comm.rank == trial_.comm.size - 1) {
    output->spoil(trial_, Fate::defined, false);
  }
  uint64_t mine = 14695981039346656037u, least = 0, most = 0;  // FNV-1a, by words
  for (size_t i = 0; i < total(); ++i) {
    for (const Segment& unit : output->type.map) {
      const std::byte* at = output->our_memory.element(0, i) + unit.at;
      for (size_t k = 0; k < unit.bytes; k += 8) {
        mine = (mine ^ load(at + k, std::min<size_t>(8, unit.bytes - k))) * 1099511628211u;
      }
    }
  }
  IN_MPI(MPI_Allreduce)(&mine, &least, 1, MPI_UINT64_T, MPI_MIN, trial_.comm.in_mpi);
  IN_MPI(MPI_Allreduce)(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, trial_.comm.in_mpi);
  if (least != most) trial_.complain("not the same bits on all ranks");
}

Rest start_by(Reducer& reducer, Trial& trial) {
  if (trial.shared.chance(3)) return reducer.run_user_defined();
  if (trial.shared.chance(12) && sluice_in_process()) return reducer.run_narrow();
  return reducer.run_predefined();
}

}  // namespace

Rest start_reducing(Trial& trial) {
  const auto reducer = std::make_shared<Reducer>(trial);
  return [reducer, rest = start_by(*reducer, trial)] { rest(); };
}

}  // namespace test
