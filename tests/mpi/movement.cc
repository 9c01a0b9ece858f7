// SPDX-License-Identifier: BSD-3-Clause
//
// movement [--seed S] [--cases N] [--only FUNCTION] [--bytes MOST]: tests collectives that move
// data, with datatypes of all constructions. Types differ between ranks and between the two sides;
// calls are in place or not, on several communicators. Every byte of the result is compared with
// the expected one, and bytes outside it must not change.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>

#include "tests/mpi/harness.h"
#include "tests/mpi/shapes.h"

namespace {

using test::Memory;
using test::Random;
using test::ShapedType;
using test::Unit;
using Message = std::vector<std::byte>;

struct Comm {
  MPI_Comm handle;
  int rank, size;
  std::string name;
};

Comm describe(MPI_Comm handle, const char* name) {
  Comm comm{handle, 0, 0, name};
  MPI_Comm_rank(handle, &comm.rank);
  MPI_Comm_size(handle, &comm.size);
  return comm;
}

std::vector<Comm> all_comms() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm copy, reversed, half;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  return {describe(MPI_COMM_WORLD, "world"), describe(copy, "a duplicate"),
          describe(reversed, "reversed"), describe(half, "every other"),
          describe(MPI_COMM_SELF, "self")};
}

// One side of a call on this rank: a type and the blocks of a buffer.
struct Part {
  ShapedType type;
  std::vector<Memory::Block> blocks;
  std::unique_ptr<Memory> memory, expected;

  int count(size_t block = 0) const { return static_cast<int>(blocks[block].count); }
  std::vector<int> counts() const {
    std::vector<int> list;
    for (const Memory::Block& block : blocks) list.push_back(static_cast<int>(block.count));
    return list;
  }
  std::vector<int> displacements() const {
    std::vector<int> list;
    for (const Memory::Block& block : blocks) list.push_back(static_cast<int>(block.displacement));
    return list;
  }
  void* buffer() const { return absolute ? MPI_BOTTOM : memory->buffer(); }

  // The same with absolute addresses, from MPI_BOTTOM.
  void make_absolute() {
    MPI_Aint address = 0;
    MPI_Datatype moved, sized;
    MPI_Get_address(memory->buffer(), &address);
    MPI_Type_create_hindexed_block(1, 1, &address, type.handle, &moved);
    MPI_Type_create_resized(moved, address, type.extent, &sized);
    MPI_Type_free(&moved);
    MPI_Type_commit(&sized);
    test::free_type(&type);
    type.handle = sized;
    type.predefined = false;
    absolute = true;
  }
  bool absolute = false;
};

class Movement {
 public:
  Movement(uint64_t seed, size_t most_bytes)
      : most_bytes_(most_bytes), cases_(seed), comms_(all_comms()), units_(test::all_units()) {}

  void run_case(const std::string& function);

 private:
  void draw_case();
  void broadcast();
  void allgather(bool vector);
  void alltoall(bool vector);
  void gather(bool vector);
  void scatter(bool vector);
  void barrier();

  // Blocks of whole elements on this rank; `scattered`: in any order, with gaps between.
  Part make(const std::vector<size_t>& units, bool scattered);
  std::vector<Memory::Block> lay_out(const std::vector<size_t>& units, size_t per_element,
                                     bool scattered);
  size_t draw_units();
  // Of each rank's block; all alike unless `vector`.
  std::vector<size_t> draw_all_units(bool vector);
  Message message(int from, int to, size_t units) const;
  void verify(const Part& part, const char* which);
  std::string describe_case() const;

  size_t most_bytes_;
  Random cases_;      // equal draws on all ranks
  Random shared_{0};  // equal draws on all ranks of the case's communicator
  Random own_{0};     // other draws on each rank
  std::vector<Comm> comms_;
  std::vector<Unit> units_;

  std::string function_;
  uint64_t case_ = 0;
  const Comm* comm_ = nullptr;
  const Unit* unit_ = nullptr;
  size_t grain_ =
      1;  // all blocks are multiples of so many units, so that types may have any divisor of it
  bool in_place_ = false;
};

void Movement::draw_case() {
  case_ = cases_.next();
  shared_ = Random(case_);
  comm_ = &shared_.pick(comms_);
  unit_ = &shared_.pick(units_);
  grain_ = shared_.pick<size_t>({1, 2, 3, 4, 6, 12});
  in_place_ = shared_.chance(3);
  int world = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  own_ = Random(case_ + 1 + static_cast<uint64_t>(world));
}

size_t Movement::draw_units() {
  const auto most = most_bytes_ / unit_->size() / static_cast<size_t>(comm_->size);
  const size_t n = shared_.pick<size_t>({0, 1, 1, 2, 3, 5, 7, 16, 31, 64, 101, 1000, 4099, 65536});
  return std::min(n * grain_, most / grain_ * grain_);
}

std::vector<size_t> Movement::draw_all_units(bool vector) {
  std::vector<size_t> units(static_cast<size_t>(comm_->size));
  for (size_t& n : units) n = vector || &n == units.data() ? draw_units() : units[0];
  return units;
}

Message Movement::message(int from, int to, size_t units) const {
  Message bytes(units * unit_->size());
  Random random(case_ * 31 + static_cast<uint64_t>(from) * 1009 + static_cast<uint64_t>(to));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

std::vector<Memory::Block> Movement::lay_out(const std::vector<size_t>& units, size_t per_element,
                                             bool scattered) {
  std::vector<size_t> order(units.size());
  std::iota(order.begin(), order.end(), 0);
  ptrdiff_t at = 0;
  if (scattered) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[own_.below(i)]);
    at = static_cast<ptrdiff_t>(own_.below(9)) - 4;
  }
  std::vector<Memory::Block> blocks(units.size());
  for (const size_t i : order) {
    blocks[i] = {at, units[i] / per_element};
    at += static_cast<ptrdiff_t>(blocks[i].count + (scattered ? own_.below(3) : 0));
    // The displacement of an empty block means nothing.
    if (scattered && blocks[i].count == 0) blocks[i].displacement = -123456789;
  }
  return blocks;
}

Part Movement::make(const std::vector<size_t>& units, bool scattered) {
  std::vector<size_t> divisors;
  for (size_t k = 1; k <= grain_; ++k) {
    if (grain_ % k == 0) divisors.push_back(k);
  }
  const size_t per_element = own_.pick(divisors);
  Part part;
  part.blocks = lay_out(units, per_element, scattered);
  size_t span = 8 + 3 * units.size();  // in extents, gaps included
  for (const Memory::Block& block : part.blocks) span += block.count;
  part.type = test::draw_type(*unit_, per_element, span, own_);
  part.memory = std::make_unique<Memory>(part.type, part.blocks, case_, own_.below(8));
  if (own_.chance(4)) part.make_absolute();
  return part;
}

std::string Movement::describe_case() const {
  return function_ + " on " + comm_->name + " of " + std::to_string(comm_->size) + ", rank " +
         std::to_string(comm_->rank) + (in_place_ ? ", in place" : "");
}

void Movement::verify(const Part& part, const char* which) {
  test::check(*part.memory == *part.expected,
              describe_case() + ", type '" + part.type.construction + "' of " +
                  std::to_string(part.type.size()) + " bytes, " + which + ": " +
                  part.memory->difference(*part.expected));
}

void Movement::broadcast() {
  const size_t units = draw_units();
  const int root = static_cast<int>(shared_.below(static_cast<size_t>(comm_->size)));
  Part part = make({units}, false);
  const Message data = message(root, 0, units);
  part.expected = std::make_unique<Memory>(*part.memory);
  part.expected->write(0, data);
  if (comm_->rank == root) part.memory->write(0, data);
  // By either of its names.
  if (own_.chance(4)) {
    PMPI_Bcast(part.buffer(), part.count(), part.type.handle, root, comm_->handle);
  } else {
    MPI_Bcast(part.buffer(), part.count(), part.type.handle, root, comm_->handle);
  }
  verify(part, "buffer");
  test::free_type(&part.type);
}

void Movement::allgather(bool vector) {
  const std::vector<size_t> units = draw_all_units(vector);
  const auto me = static_cast<size_t>(comm_->rank);
  Part input = make({units[me]}, false), output = make(units, vector);
  output.expected = std::make_unique<Memory>(*output.memory);
  for (size_t i = 0; i < units.size(); ++i) {
    output.expected->write(i, message(static_cast<int>(i), 0, units[i]));
  }
  if (in_place_) output.memory->write(me, message(comm_->rank, 0, units[me]));
  input.memory->write(0, message(comm_->rank, 0, units[me]));
  input.expected = std::make_unique<Memory>(*input.memory);
  const void* const from = in_place_ ? MPI_IN_PLACE : input.buffer();
  if (vector) {
    MPI_Allgatherv(from, input.count(), input.type.handle, output.buffer(), output.counts().data(),
                   output.displacements().data(), output.type.handle, comm_->handle);
  } else {
    MPI_Allgather(from, input.count(), input.type.handle, output.buffer(), output.count(),
                  output.type.handle, comm_->handle);
  }
  verify(input, "input");
  verify(output, "output");
  test::free_type(&input.type);
  test::free_type(&output.type);
}

void Movement::alltoall(bool vector) {
  const auto size = static_cast<size_t>(comm_->size);
  const auto me = static_cast<size_t>(comm_->rank);
  // units[i][j]: sent from i to j. In place, the same number comes back.
  std::vector<std::vector<size_t>> units(size, std::vector<size_t>(size));
  const size_t same = draw_units() / size / grain_ * grain_;
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < size; ++j) {
      units[i][j] = vector ? draw_units() / size / grain_ * grain_ : same;
      if (in_place_ && j < i) units[i][j] = units[j][i];
    }
  }
  std::vector<size_t> incoming;
  for (size_t i = 0; i < size; ++i) incoming.push_back(units[i][me]);
  Part input = make(units[me], vector), output = make(incoming, vector);
  output.expected = std::make_unique<Memory>(*output.memory);
  for (size_t i = 0; i < size; ++i) {
    const int peer = static_cast<int>(i);
    output.expected->write(i, message(peer, comm_->rank, incoming[i]));
    if (in_place_) output.memory->write(i, message(comm_->rank, peer, units[me][i]));
    input.memory->write(i, message(comm_->rank, peer, units[me][i]));
  }
  input.expected = std::make_unique<Memory>(*input.memory);
  const void* const from = in_place_ ? MPI_IN_PLACE : input.buffer();
  if (vector) {
    MPI_Alltoallv(from, input.counts().data(), input.displacements().data(), input.type.handle,
                  output.buffer(), output.counts().data(), output.displacements().data(),
                  output.type.handle, comm_->handle);
  } else {
    MPI_Alltoall(from, input.count(), input.type.handle, output.buffer(), output.count(),
                 output.type.handle, comm_->handle);
  }
  verify(input, "input");
  verify(output, "output");
  test::free_type(&input.type);
  test::free_type(&output.type);
}

// Ranks other than the root have no blocks of all ranks.
void Movement::gather(bool vector) {
  const int root = static_cast<int>(shared_.below(static_cast<size_t>(comm_->size)));
  const bool is_root = comm_->rank == root, in_place = in_place_ && is_root;
  const std::vector<size_t> units = draw_all_units(vector);
  const auto me = static_cast<size_t>(comm_->rank);
  Part input = make({units[me]}, false), output = make(units, vector);
  output.expected = std::make_unique<Memory>(*output.memory);
  for (size_t i = 0; is_root && i < units.size(); ++i) {
    output.expected->write(i, message(static_cast<int>(i), 0, units[i]));
  }
  if (in_place) output.memory->write(me, message(comm_->rank, 0, units[me]));
  input.memory->write(0, message(comm_->rank, 0, units[me]));
  input.expected = std::make_unique<Memory>(*input.memory);
  const void* const from = in_place ? MPI_IN_PLACE : input.buffer();
  if (vector) {
    MPI_Gatherv(from, input.count(), input.type.handle, output.buffer(),
                is_root ? output.counts().data() : nullptr,
                is_root ? output.displacements().data() : nullptr, output.type.handle, root,
                comm_->handle);
  } else {
    MPI_Gather(from, input.count(), input.type.handle, output.buffer(),
               is_root ? output.count() : -1, output.type.handle, root, comm_->handle);
  }
  verify(input, "input");
  verify(output, "output");
  test::free_type(&input.type);
  test::free_type(&output.type);
}

void Movement::scatter(bool vector) {
  const int root = static_cast<int>(shared_.below(static_cast<size_t>(comm_->size)));
  const bool is_root = comm_->rank == root, in_place = in_place_ && is_root;
  const std::vector<size_t> units = draw_all_units(vector);
  const auto me = static_cast<size_t>(comm_->rank);
  Part input = make(units, vector), output = make({units[me]}, false);
  for (size_t i = 0; i < units.size(); ++i) {
    input.memory->write(i, message(root, static_cast<int>(i), units[i]));
  }
  input.expected = std::make_unique<Memory>(*input.memory);
  output.expected = std::make_unique<Memory>(*output.memory);
  if (!in_place) output.expected->write(0, message(root, comm_->rank, units[me]));
  void* const to = in_place ? MPI_IN_PLACE : output.buffer();
  const MPI_Datatype type = is_root ? input.type.handle : MPI_DATATYPE_NULL;
  if (vector) {
    MPI_Scatterv(is_root ? input.buffer() : nullptr, input.counts().data(),
                 input.displacements().data(), type, to, output.count(), output.type.handle, root,
                 comm_->handle);
  } else {
    MPI_Scatter(is_root ? input.buffer() : nullptr, input.count(), type, to, output.count(),
                output.type.handle, root, comm_->handle);
  }
  verify(input, "input");
  verify(output, "output");
  test::free_type(&input.type);
  test::free_type(&output.type);
}

// No rank may leave before the last one has entered. (Ranks share the monotonic clock.)
void Movement::barrier() {
  const auto now = [] {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(time).count();
  };
  if (own_.chance(2)) usleep(static_cast<useconds_t>(own_.below(2000)));
  double came = now(), last = 0, first = 0;
  MPI_Barrier(comm_->handle);
  double left = now();
  IN_MPI(MPI_Allreduce)(&came, &last, 1, MPI_DOUBLE, MPI_MAX, comm_->handle);
  IN_MPI(MPI_Allreduce)(&left, &first, 1, MPI_DOUBLE, MPI_MIN, comm_->handle);
  test::check(last <= first, describe_case() + ": left before all had come");
}

void Movement::run_case(const std::string& function) {
  function_ = function;
  draw_case();
  const bool vector = function.back() == 'v';
  if (function == "bcast") return broadcast();
  if (function.starts_with("allgather")) return allgather(vector);
  if (function.starts_with("alltoall")) return alltoall(vector);
  if (function.starts_with("gather")) return gather(vector);
  if (function.starts_with("scatter")) return scatter(vector);
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const uint64_t seed = test::agree_on_seed(options);
  const std::string only = options.text("only", "");
  const char* const functions[] = {"bcast",   "allgather", "allgatherv", "alltoall", "alltoallv",
                                   "barrier", "gather",    "gatherv",    "scatter",  "scatterv"};
  Movement movement(seed, options.number("bytes", 1 << 20));
  for (uint64_t i = 0; i < options.number("cases", 100); ++i) {
    for (const char* function : functions) {
      if (only.empty() || only == function) movement.run_case(function);
    }
  }
  return test::finish("movement");
}
