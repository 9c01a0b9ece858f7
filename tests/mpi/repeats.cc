// SPDX-License-Identifier: BSD-3-Clause
//
// repeats [--seed S] [--steps N]: tests the call cache. Calls repeat the last one, or differ from
// it in one thing: the buffers, in place or not, the count, the root, the operation, the content of
// count arrays, or a type or communicator that was freed and made again (often with the same
// handle). The cached description must be used only if it fits: every result must equal that of
// MPI's own function.
#include <algorithm>

#include "tests/mpi/harness.h"

namespace {

using test::Random;

constexpr size_t room = 1 << 13;  // ints in each buffer

enum class Function {
  allreduce,
  reduce,
  bcast,
  allgather,
  alltoall,
  reduce_scatter,
  barrier,
  allgatherv,
  alltoallv,
  uneven_reduce_scatter,
  scan,
  exscan,
  gather,
  gatherv,
  scatter,
  scatterv,
};
constexpr size_t functions = 16;

// The parameters of a step, equal on all ranks.
struct Step {
  Function function = Function::allreduce;
  int count = 1;
  int root = 0;
  MPI_Op op = MPI_SUM;
  bool derived = false;  // if the function does not reduce
  bool in_place = false;
  size_t offset = 0;    // of the buffers, in ints
  uint64_t blocks = 0;  // selects sizes and order of blocks of uneven size

  // Elements that one rank sends another; symmetric, as MPI_IN_PLACE needs it.
  int between(int one, int other) const {
    const auto low = static_cast<uint64_t>(std::min(one, other));
    const auto high = static_cast<uint64_t>(std::max(one, other));
    if (blocks == 0) return count;
    return static_cast<int>(Random(blocks + 64 * low + high).below(static_cast<size_t>(count) + 1));
  }
};

// A function's count arrays. The next call has other numbers at the same addresses.
struct Arrays {
  std::vector<int> counts, displacements;

  // counts_of(i) returns the count of block i.
  template <typename CountOf>
  void fill(int blocks, bool backwards, const CountOf& counts_of) {
    const auto n = static_cast<size_t>(blocks);
    counts.resize(n);
    displacements.resize(n);
    int next = 0;
    for (int step = 0; step < blocks; ++step) {
      const int block = backwards ? blocks - 1 - step : step;
      counts[static_cast<size_t>(block)] = counts_of(block);
      displacements[static_cast<size_t>(block)] = next;
      next += counts_of(block) + (backwards ? 1 : 0);
    }
  }
};

struct Memories {
  std::vector<int> send = std::vector<int>(room), receive = std::vector<int>(room);
};

class Program {
 public:
  explicit Program(uint64_t seed) : shared_(seed) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    own_ = Random(seed + 1 + static_cast<uint64_t>(rank_));
    remake_comm();
    remake_type();
  }
  ~Program() {
    MPI_Comm_free(&comm_);
    MPI_Type_free(&type_);
  }

  void step() {
    change();
    for (int& number : ours_.send) number = static_cast<int>(own_.next());
    for (int& number : ours_.receive) number = static_cast<int>(own_.next());
    Memories theirs = ours_;
    call(ours_, false);
    call(theirs, true);
    const std::string where = "step " + std::to_string(++number_) + ", function " +
                              std::to_string(static_cast<int>(step_.function)) + ", count " +
                              std::to_string(step_.count) + (step_.in_place ? ", in place" : "") +
                              (step_.derived ? ", a derived type" : "");
    test::check(ours_.receive == theirs.receive, where + ": the result is not MPI's");
    test::check(ours_.send == theirs.send, where + ": the input has changed");
  }

 private:
  void change() {
    const size_t what = shared_.below(18);
    if (what == 0) step_.function = static_cast<Function>(shared_.below(functions));
    if (what == 1)
      step_.count = static_cast<int>(
          shared_.below(shared_.chance(4) ? room / (4 * static_cast<size_t>(size_)) : 9));
    if (what == 2) step_.root = static_cast<int>(shared_.below(static_cast<size_t>(size_)));
    if (what == 3) step_.op = shared_.pick(std::vector<MPI_Op>{MPI_SUM, MPI_MAX, MPI_BXOR});
    if (what == 4) step_.derived = !step_.derived;
    if (what == 5) step_.in_place = !step_.in_place;
    if (what == 6) remake_type();
    if (what == 7) remake_comm();
    if (what == 8) give_hint();
    if (what == 9) step_.blocks = shared_.chance(3) ? 0 : shared_.next() % (uint64_t{1} << 40);
    if (what >= 10) step_.offset = own_.below(64);
  }

  // A type of two ints, adjacent or with a gap.
  void remake_type() {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
    MPI_Type_vector(2, 1, 1 + static_cast<int>(shared_.below(2)), MPI_INT, &type_);
    MPI_Type_commit(&type_);
  }

  void remake_comm() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
    const int key = shared_.chance(2) ? rank_ : -rank_;
    MPI_Comm_split(MPI_COMM_WORLD, 0, key, &comm_);
  }

  // A hint ends the team; the next call sets up another.
  void give_hint() {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "sluice_allreduce", shared_.chance(2) ? "auto" : "ring");
    MPI_Comm_set_info(comm_, info);
    MPI_Info_free(&info);
  }

  void call(Memories& memories, bool in_mpi);
  void move(void* send, void* receive, bool in_mpi);
  void move_uneven(void* send, void* receive, bool in_mpi);
  void move_by_root(int* send, int* receive, bool in_mpi);

  Random shared_, own_{0};
  int rank_ = 0, size_ = 0;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  Step step_;
  Memories ours_;
  Arrays sent_, received_;
  int number_ = 0;
};

#define CALL(function, ...) (in_mpi ? IN_MPI(function) : &(function))(__VA_ARGS__)

void Program::call(Memories& memories, bool in_mpi) {
  const Step& s = step_;
  int me = 0;
  MPI_Comm_rank(comm_, &me);
  const bool in_place = s.in_place && (s.function != Function::reduce || me == s.root);
  void* const send = in_place ? MPI_IN_PLACE : memories.send.data() + s.offset;
  int* const receive = memories.receive.data() + s.offset;
  switch (s.function) {
    case Function::allreduce:
      CALL(MPI_Allreduce, send, receive, s.count, MPI_INT, s.op, comm_);
      break;
    case Function::scan:
      CALL(MPI_Scan, send, receive, s.count, MPI_INT, s.op, comm_);
      break;
    case Function::exscan:
      CALL(MPI_Exscan, send, receive, s.count, MPI_INT, s.op, comm_);
      break;
    case Function::reduce: {
      // MPICH 4.0.2's own MPI_Reduce crashes in place.
      const std::vector<int> operands(receive, receive + s.count);
      const bool elsewhere = in_mpi && in_place;
      CALL(MPI_Reduce, elsewhere ? operands.data() : send, receive, s.count, MPI_INT, s.op, s.root,
           comm_);
      break;
    }
    case Function::reduce_scatter:
      CALL(MPI_Reduce_scatter_block, send, receive, s.count, MPI_INT, s.op, comm_);
      // In place, memory after the result is undefined.
      if (in_place) std::fill(receive + s.count, receive + size_ * s.count, 0);
      break;
    case Function::uneven_reduce_scatter: {
      const auto of_block = [&](int block) { return s.between(block, block); };
      received_.fill(size_, false, of_block);
      CALL(MPI_Reduce_scatter, send, receive, received_.counts.data(), MPI_INT, s.op, comm_);
      if (in_place) std::fill(receive + of_block(me), memories.receive.data() + room, 0);
      break;
    }
    case Function::barrier:
      CALL(MPI_Barrier, comm_);
      break;
    case Function::allgatherv:
    case Function::alltoallv:
      move_uneven(send, receive, in_mpi);
      break;
    case Function::gather:
    case Function::gatherv:
    case Function::scatter:
    case Function::scatterv:
      move_by_root(memories.send.data() + s.offset, receive, in_mpi);
      break;
    default:
      move(send, receive, in_mpi);
  }
}

void Program::move(void* send, void* receive, bool in_mpi) {
  const Step& s = step_;
  const MPI_Datatype type = s.derived ? type_ : MPI_INT;
  if (s.function == Function::bcast) {
    CALL(MPI_Bcast, receive, s.count, type, s.root, comm_);
  } else if (s.function == Function::allgather) {
    CALL(MPI_Allgather, send, s.count, type, receive, s.count, type, comm_);
  } else {
    CALL(MPI_Alltoall, send, s.count, type, receive, s.count, type, comm_);
  }
}

void Program::move_uneven(void* send, void* receive, bool in_mpi) {
  const Step& s = step_;
  const MPI_Datatype type = s.derived ? type_ : MPI_INT;
  const bool backwards = s.blocks % 2 == 1;
  int me = 0;
  MPI_Comm_rank(comm_, &me);
  if (s.function == Function::allgatherv) {
    received_.fill(size_, backwards, [&](int block) { return s.between(block, block); });
    CALL(MPI_Allgatherv, send, s.between(me, me), type, receive, received_.counts.data(),
         received_.displacements.data(), type, comm_);
    return;
  }
  const auto with = [&](int block) { return s.between(me, block); };
  received_.fill(size_, backwards, with);
  sent_.fill(size_, false, with);
  const bool in_place = send == MPI_IN_PLACE;  // then these may be anything
  int* const nowhere = reinterpret_cast<int*>(8);
  CALL(MPI_Alltoallv, send, in_place ? nowhere : sent_.counts.data(),
       in_place ? nowhere : sent_.displacements.data(), in_place ? MPI_DATATYPE_NULL : type,
       receive, received_.counts.data(), received_.displacements.data(), type, comm_);
}

// What means nothing on a rank may be anything: all ranks' blocks except at the root, and the
// root's own in place.
void Program::move_by_root(int* send, int* receive, bool in_mpi) {
  const Step& s = step_;
  int me = 0;
  MPI_Comm_rank(comm_, &me);
  const bool is_root = me == s.root, in_place = s.in_place && is_root;
  const bool gathers = s.function == Function::gather || s.function == Function::gatherv;
  const auto of_block = [&](int block) { return s.between(block, block); };
  received_.fill(size_, s.blocks % 2 == 1, of_block);
  int* const nowhere = reinterpret_cast<int*>(8);
  int* const counts = is_root ? received_.counts.data() : nowhere;
  int* const places = is_root ? received_.displacements.data() : nowhere;
  int* const all = !is_root ? nowhere : gathers ? receive : send;
  void* const own = in_place ? MPI_IN_PLACE : gathers ? send : receive;
  const MPI_Datatype type = s.derived ? type_ : MPI_INT;
  const MPI_Datatype all_type = is_root ? type : MPI_DATATYPE_NULL;
  const MPI_Datatype own_type = in_place ? MPI_DATATYPE_NULL : type;
  if (s.function == Function::gather) {
    CALL(MPI_Gather, own, s.count, own_type, all, s.count, all_type, s.root, comm_);
  } else if (s.function == Function::gatherv) {
    CALL(MPI_Gatherv, own, of_block(me), own_type, all, counts, places, all_type, s.root, comm_);
  } else if (s.function == Function::scatter) {
    CALL(MPI_Scatter, all, s.count, all_type, own, s.count, own_type, s.root, comm_);
  } else {
    CALL(MPI_Scatterv, all, counts, places, all_type, own, of_block(me), own_type, s.root, comm_);
  }
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  {
    const test::Options options(argc, argv);
    Program program(test::agree_on_seed(options));
    for (uint64_t steps = options.number("steps", 3000); steps > 0; --steps) program.step();
  }
  return test::finish("repeats");
}
