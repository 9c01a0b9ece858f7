// SPDX-License-Identifier: BSD-3-Clause
//
// Trials of the reducing collectives: predefined operations on predefined types with arbitrary
// values (rounding.h bounds the rounding errors), and user-defined operations, commutative or not,
// on types of all constructions.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "tests/mpi/narrow.h"
#include "tests/mpi/numbers.h"
#include "tests/mpi/rounding.h"
#include "tests/mpi/trial.h"

namespace test {
namespace {

// The type to which the user-defined operations are applied now.
const ShapedType* reduced_type = nullptr;

// Whether rank 0 of an exclusive scan may give no buffer for the result that it doesn't get. (MPICH
// has an error for that.)
#ifdef OPEN_MPI
constexpr bool null_in_exscan = true;
#else
constexpr bool null_in_exscan = false;
#endif

using Combine = uint64_t (*)(uint64_t left, uint64_t right);

uint64_t load(const std::byte* at, size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

void store(std::byte* at, size_t bytes, uint64_t value) { std::memcpy(at, &value, bytes); }

// Calls `each` with the two operands of every element, at the type map's origin. (The type may use
// absolute addresses.)
template <typename Each>
void for_elements(void* left, void* right, const int* count, const MPI_Datatype* type, Each each) {
  int size = 0;
  MPI_Type_size(*type, &size);
  if (static_cast<size_t>(size) != reduced_type->size()) fail("an operation on another type");
  MPI_Aint lower = 0, plain_lower = 0, extent = 0;
  MPI_Type_get_extent(*type, &lower, &extent);
  MPI_Type_get_extent(reduced_type->handle, &plain_lower, &extent);
  for (int i = 0; i < *count; ++i) {
    const ptrdiff_t at = lower - plain_lower + i * reduced_type->extent;
    each(static_cast<std::byte*>(left) + at, static_cast<std::byte*>(right) + at);
  }
}

// Adds units; commutative.
void add(void* left, void* right, int* count, MPI_Datatype* type) {
  for_elements(left, right, count, type, [](const std::byte* a, std::byte* b) {
    for (const Segment& unit : reduced_type->map) {
      store(b + unit.at, unit.bytes, load(a + unit.at, unit.bytes) + load(b + unit.at, unit.bytes));
    }
  });
}

void keep_left(void* left, void* right, int* count, MPI_Datatype* type) {
  for_elements(left, right, count, type, [](const std::byte* a, std::byte* b) {
    for (const Segment& unit : reduced_type->map) std::memcpy(b + unit.at, a + unit.at, unit.bytes);
  });
}

// A pair of units (m, n) is the function m x + n; composes them. A single last unit keeps the right
// operand.
void compose(void* left, void* right, int* count, MPI_Datatype* type) {
  for_elements(left, right, count, type, [](const std::byte* a, std::byte* b) {
    const std::vector<Segment>& map = reduced_type->map;
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
  void run_predefined();
  void run_user_defined();
  // Sums, products, minima and maxima of small integers in 16-bit formats.
  void run_narrow();

 private:
  struct Task {
    MPI_Op ours, theirs;
    const Number* number = nullptr;                           // only predefined types
    std::function<void(Memory* memory, size_t n)> fill = {};  // empty: any bytes will do
  };
  void draw_counts(size_t element_bytes);
  // MPI computes on `dense`, which has the same signature, because Open MPI's own buffers for types
  // with gaps may be wrong.
  void run(ShapedType type, const ShapedType& dense, const Task& task);
  template <typename All, typename One, typename Scatter, typename ScatterBlock>
  void call(Phase in, All* all, One* one, Scatter* scatter, ScatterBlock* scatter_block,
            const void* from, const Words& to, MPI_Op op);
  void call_ours(Side* input, Side* output, MPI_Op op);
  void call_theirs(Side* input, Side* output, MPI_Op op);
  void paint(Side* output, const Number* number) const;
  void compare(const Number& number, MPI_Op op, Side* input, Side* output);
  // After an allreduce all ranks must have the same bits.
  void compare_ranks(Side* output);

  // MPI_Scan or MPI_Exscan: rank r gets what ranks up to r have.
  bool is_prefix() const { return trial_.function.ends_with("can"); }
  // Of the functions that give a rank all elements of the result.
  template <typename Function>
  Function* whole(Function* allreduce, Function* scan, Function* exscan) const {
    return trial_.function == "MPI_Scan" ? scan : is_prefix() ? exscan : allreduce;
  }
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

void Reducer::run_predefined() {
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
  run(std::move(type), alike, {op.handle, op.handle, &number, fill});
}

void Reducer::run_user_defined() {
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
  const UserOp& drawn = ops[trial_.shared.below(4)];
  const Unit& unit = units[trial_.shared.below(4)];
  const size_t per_element = trial_.shared.pick<size_t>({1, 2, 2, 3, 4, 6, 20});
  draw_counts(unit.size() * per_element * 3);
  // MPI requires the same type on all ranks.
  ShapedType type = draw_type(unit, per_element, total() + 1, trial_.shared);
  trial_.story += std::string("; ") + drawn.name + " on " + type.construction;
  MPI_Op op;
  MPI_Op_create(drawn.function, drawn.commutes, &op);
  ShapedType dense = contiguous_type(unit, per_element);
  run(std::move(type), dense, {op, op});
  free_type(&dense);
  MPI_Op_free(&op);
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

void Reducer::run_narrow() {
  struct NarrowOp {
    MPI_Op op;
    int (*combine)(int, int);
    const char* name;
  };
  const NarrowOp ops[] = {{MPI_SUM, [](int a, int b) { return a + b; }, "sum"},
                          {MPI_PROD, [](int a, int b) { return a * b; }, "product"},
                          {MPI_MIN, [](int a, int b) { return std::min(a, b); }, "minimum"},
                          {MPI_MAX, [](int a, int b) { return std::max(a, b); }, "maximum"}};
  const std::vector<NarrowFormat> formats = narrow_formats();
  const NarrowFormat format = trial_.shared.pick(formats);
  const NarrowOp drawn = ops[trial_.shared.below(4)];
  narrow = &format;
  combine_narrow = drawn.combine;
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
  run(type, bits, {drawn.op, op, nullptr, fill});
  MPI_Op_free(&op);
}

template <typename All, typename One, typename Scatter, typename ScatterBlock>
void Reducer::call(Phase in, All* all, One* one, Scatter* scatter, ScatterBlock* scatter_block,
                   const void* from, const Words& to, MPI_Op op) {
  phase = in;
  const int count = static_cast<int>(total());
  if (trial_.function == "MPI_Reduce") {
    one(from, to.buffer, count, to.type, op, trial_.root, trial_.comm.handle);
  } else if (trial_.function == "MPI_Reduce_scatter") {
    scatter(from, to.buffer, Array<MPI_Count>(counts_), to.type, op, trial_.comm.handle);
  } else if (scatters()) {
    scatter_block(from, to.buffer, counts_[0], to.type, op, trial_.comm.handle);
  } else {
    all(from, to.buffer, count, to.type, op, trial_.comm.handle);
  }
}

void Reducer::call_ours(Side* input, Side* output, MPI_Op op) {
  const Words from = input->ours();
  Words to = output->ours();
  const bool without =
      !has_result() && !in_place() && (null_in_exscan || !is_prefix()) && trial_.own.chance(2);
  if (without) to.buffer = nullptr;
  const void* const data = in_place() ? MPI_IN_PLACE : from.buffer;
  if (trial_.large) {
    call(Phase::in_sluice,
         whole(LARGE(trial_, MPI_Allreduce), LARGE(trial_, MPI_Scan), LARGE(trial_, MPI_Exscan)),
         LARGE(trial_, MPI_Reduce), LARGE(trial_, MPI_Reduce_scatter),
         LARGE(trial_, MPI_Reduce_scatter_block), data, to, op);
  } else {
    call(Phase::in_sluice,
         whole(EITHER(trial_, MPI_Allreduce), EITHER(trial_, MPI_Scan), EITHER(trial_, MPI_Exscan)),
         EITHER(trial_, MPI_Reduce), EITHER(trial_, MPI_Reduce_scatter),
         EITHER(trial_, MPI_Reduce_scatter_block), data, to, op);
  }
  input->take_ours();
  output->take_ours();
}

// Never in place: MPICH 4.0.2's own MPI_Reduce crashes there.
void Reducer::call_theirs(Side* input, Side* output, MPI_Op op) {
  call(Phase::in_mpi, whole(IN_MPI(MPI_Allreduce), IN_MPI(MPI_Scan), IN_MPI(MPI_Exscan)),
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

void Reducer::run(ShapedType type, const ShapedType& dense, const Task& task) {
  const Number* const number = task.number;
  ShapedType alike = type;
  if (!type.predefined) MPI_Type_dup(type.handle, &alike.handle);
  const size_t count = total();
  for (const int n : counts_) trial_.story += " " + std::to_string(n);
  const MPI_Datatype in_mpi = number ? MPI_DATATYPE_NULL : dense.handle;
  Side input(std::move(type), {{0, count}}, in_mpi, trial_);
  if (task.fill) task.fill(&input.before, count);
  input.settle();
  Side output(std::move(alike), {{0, in_place() ? count : own()}}, in_mpi, trial_);
  if (in_place()) {
    for (size_t i = 0; i < count; ++i) {
      for (const Segment& unit : output.type.map) {
        std::memcpy(output.before.element(0, i) + unit.at, input.before.element(0, i) + unit.at,
                    unit.bytes);
      }
    }
    output.settle();
    if (!number && !output.type.predefined && trial_.own.chance(4)) output.use_absolute_addresses();
  }
  reduced_type = &input.type;
  call_ours(&input, &output, task.ours);
  reduced_type = &dense;
  call_theirs(&input, &output, task.theirs);
  paint(&output, number);
  damage(trial_, &input, &output);
  input.verify(trial_, "the input", true);
  const bool rounds = number && is_rounded(*number);
  output.verify(trial_, "the result", !rounds);
  if (rounds) compare(*number, task.ours, &input, &output);
  if (trial_.function == "MPI_Allreduce") compare_ranks(&output);
}

void Reducer::compare(const Number& number, MPI_Op op, Side* input, Side* output) {
  const std::vector<long double> sums = sums_of_magnitudes(
      number, op, &input->before, total(),
      whole(IN_MPI(MPI_Allreduce), IN_MPI(MPI_Scan), IN_MPI(MPI_Exscan)), trial_.comm.handle);
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
  IN_MPI(MPI_Allreduce)(&mine, &least, 1, MPI_UINT64_T, MPI_MIN, trial_.comm.handle);
  IN_MPI(MPI_Allreduce)(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, trial_.comm.handle);
  if (least != most) trial_.complain("not the same bits on all ranks");
}

}  // namespace

void try_reducing(Trial& trial) {
  Reducer reducer(trial);
  if (trial.shared.chance(3)) return reducer.run_user_defined();
  if (trial.shared.chance(12) && sluice_in_process()) return reducer.run_narrow();
  reducer.run_predefined();
}

}  // namespace test
