// SPDX-License-Identifier: BSD-3-Clause
//
// choices --what NAME [--calls N] [--count N] [--communicators N] [--threads N] [--pauses 1]
// [--no-files 1] [--seed S]: makes calls in a loop, with operands of random layout, and checks each
// result. Records who did each call, MPI or which algorithm; ends the job if two ranks differ, and
// prints "NAME: 910 of 1000 by MPI, from call 84 on; 8 by other algorithms, the last by ring"
// (from: all calls after the last one of Sluice's; other: than the first call's).
//
//   sums       MPI_Allreduce of integers
//   doubles    MPI_Allreduce of floating-point numbers. While Sluice does the calls, the results
//   must
//              have the bits of the same algorithm on a communicator without trials
//   roots      MPI_Reduce of floating-point numbers, with changing roots; the same
//   moves      MPI_Bcast, with changing roots
//   uneven     MPI_Alltoallv
//   varied     MPI_Alltoallv, of five amounts in turn, whose times say nothing about each other
//   spellings  MPI_Bcast and MPI_Allgatherv in turns, of one signature that each rank spells with
//              other datatypes, and data with gaps
//   empty      MPI_Bcast of nothing: of a type without data, by another count on each rank
//   outside    MPI_Allreduce of types and by operations that are not tried, in turns
//   poor       MPI_Allreduce of doubles. From call 4 on rank 1 has 32 MB more at most
//   barriers   MPI_Barrier
//   cut        MPI_Bcast. Rank 0 sends too much in call 69, the first timed one of MPI's. The
//              other's error handler leaves the communicator to MPI by a hint, and so does rank 0
//              then
//   gone       The same, but the other's error handler frees the communicator, and so does rank 0;
//              both go on with another one
//   aside      MPI_Allreduce of doubles. Rank 0 has more of them in call 69, which MPI does aside.
//              The others' error handlers are called once, and reduce other data on MPI_COMM_SELF;
//              all go on with another communicator
//   bits       each reduction that is tried, of all pairs of special values, by Sluice and by MPI:
//              the same bits
//   timed      MPI_Allreduce of integers in a bare loop, without checks; prints "timed: N ms"
//
// --communicators: each makes the calls, and is freed; MPI's calls are those of the last one.
// --threads: each with a communicator of its own.
// --no-files: MPI_Finalize may write none (RLIMIT_FSIZE).
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "tests/mpi/harness.h"

namespace {

using test::Random;

const char* last_algorithm(MPI_Comm comm) {
  static auto* const function =
      reinterpret_cast<const char* (*)(MPI_Comm)>(dlsym(RTLD_DEFAULT, "sluice_last_algorithm"));
  if (!function) test::fail("Sluice is not loaded");
  return function(comm);
}

struct Job {
  std::string what;
  int calls = 0, count = 0;
  uint64_t seed = 0;
  bool pauses = false;
};

// One communicator's calls.
class Loop {
 public:
  // comm: may become another one.
  Loop(const Job& job, MPI_Comm& comm) : job_(job), comm_(comm), own_(job.seed), all_(job.seed) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    for (int i = 0; i <= rank_; ++i) (void)own_.next();
    if (job.what == "doubles" || job.what == "roots") find_reference();
  }
  ~Loop() {
    if (reference_ != MPI_COMM_NULL) MPI_Comm_free(&reference_);
  }
  Loop(const Loop&) = delete;

  void run() {
    for (call_ = 0; call_ < job_.calls; ++call_) {
      if (job_.pauses && own_.chance(20)) {
        std::this_thread::sleep_for(std::chrono::microseconds(own_.below(2000)));
      }
      make_call();
      note_doer(last_algorithm(comm_));
    }
    compare_doers();
  }
  int calls_by_mpi() const {
    return static_cast<int>(std::count(doers_.begin(), doers_.end(), 'm'));
  }
  // The first call after the last one of Sluice's.
  size_t last_run() const { return doers_.find_last_not_of('m') + 1; }
  int calls_by_others() const {
    return static_cast<int>(std::count_if(doers_.begin(), doers_.end(),
                                          [](char each) { return each > first_algorithm; }));
  }
  const std::string& last_doer() const { return last_doer_; }

 private:
  static constexpr char first_algorithm = 'n';  // and those after it, in the order of their calls

  void note_doer(const std::string& name) {
    last_doer_ = name;
    if (name == "mpi") return doers_.push_back('m');
    const auto known = std::find(algorithms_.begin(), algorithms_.end(), name);
    doers_.push_back(static_cast<char>(first_algorithm + (known - algorithms_.begin())));
    if (known == algorithms_.end()) algorithms_.push_back(name);
  }

  void make_call() {
    if (job_.what == "sums") return add_integers();
    if (job_.what == "doubles" || job_.what == "roots") return add_doubles();
    if (job_.what == "moves") return move();
    if (job_.what == "uneven") return exchange(job_.count);
    if (job_.what == "varied") return exchange(job_.count << call_ % 5);
    if (job_.what == "barriers") return void(MPI_Barrier(comm_));
    if (job_.what == "spellings") return spell();
    if (job_.what == "empty") return move_nothing();
    if (job_.what == "outside") return reduce_outside();
    if (job_.what == "poor") return reduce_poorly();
    if (job_.what == "aside") return reduce_too_much();
    if (job_.what == "cut" || job_.what == "gone") return move_too_much();
    test::fail("--what is unknown: see the head of choices.cc");
  }

  void add_integers() {
    std::vector<int> in(elements()), out(elements(), -1);
    for (size_t i = 0; i < in.size(); ++i) in[i] = rank_ + call_ + static_cast<int>(i);
    const bool in_place = own_.chance(3);
    if (in_place) out = in;
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in.data(), out.data(), job_.count, MPI_INT, MPI_SUM,
                  comm_);
    bool is_right = true;
    for (size_t i = 0; i < in.size(); ++i) {
      is_right =
          is_right && out[i] == size_ * (size_ - 1) / 2 + size_ * (call_ + static_cast<int>(i));
    }
    test::check(is_right, "sums of call " + std::to_string(call_));
  }

  void add_doubles() {
    const int root =
        job_.what == "roots" ? static_cast<int>(all_.below(static_cast<size_t>(size_))) : -1;
    const bool is_root = root < 0 || root == rank_;
    std::vector<double> in(elements()), out(elements(), -1), expected(elements(), -1);
    for (double& each : in) each = draw();
    const std::vector<double> operands = in;
    if (is_root && own_.chance(2)) {
      out = expected = in;
      reduce(MPI_IN_PLACE, out.data(), root, comm_);
      if (by_sluice()) reduce(MPI_IN_PLACE, expected.data(), root, reference_);
    } else {
      reduce(in.data(), out.data(), root, comm_);
      test::check(in == operands, "operands of call " + std::to_string(call_));
      if (by_sluice()) reduce(in.data(), expected.data(), root, reference_);
    }
    const bool is_compared = is_root && by_sluice();
    test::check(
        !is_compared || std::memcmp(out.data(), expected.data(), out.size() * sizeof(double)) == 0,
        "bits of call " + std::to_string(call_));
  }

  void reduce(const void* in, void* out, int root, MPI_Comm comm) {
    if (root < 0) {
      MPI_Allreduce(in, out, job_.count, MPI_DOUBLE, MPI_SUM, comm);
    } else {
      MPI_Reduce(in, out, job_.count, MPI_DOUBLE, MPI_SUM, root, comm);
    }
  }

  void move() {
    const int root = static_cast<int>(all_.below(static_cast<size_t>(size_)));
    std::vector<int> data(elements(), -1), right(elements());
    std::iota(right.begin(), right.end(), call_);
    if (rank_ == root) data = right;
    MPI_Bcast(data.data(), job_.count, MPI_INT, root, comm_);
    test::check(data == right, "data of call " + std::to_string(call_));
  }

  // Ints as ints, in pairs, as one element, or each before a gap.
  struct Spelling {
    MPI_Datatype type;
    int count, stride;  // of elements; ints from one of the data to the next
  };
  Spelling spelling() {
    const int n = job_.count;
    MPI_Datatype type = MPI_INT;
    switch ((rank_ + call_) % 4) {
      case 0:
        return {type, n, 1};
      case 1:
        MPI_Type_contiguous(n / 2, MPI_INT, &type);
        MPI_Type_commit(&type);
        return {type, 2, 1};
      case 2:
        MPI_Type_contiguous(n, MPI_INT, &type);
        MPI_Type_commit(&type);
        return {type, 1, 1};
      default:
        MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
        MPI_Type_commit(&type);
        return {type, n, 2};
    }
  }

  void spell() {
    Spelling by = spelling();
    const size_t stride = static_cast<size_t>(by.stride), blocks = static_cast<size_t>(size_);
    const bool gathers = call_ % 2 == 1;
    std::vector<int> data(elements() * stride * (gathers ? blocks : 1), -1);
    if (gathers) {
      const std::vector<int> mine(elements(), rank_ + call_);
      std::vector<int> counts(blocks, by.count), places(blocks);
      for (int i = 0; i < size_; ++i) places[static_cast<size_t>(i)] = i * by.count;
      MPI_Allgatherv(mine.data(), job_.count, MPI_INT, data.data(), counts.data(), places.data(),
                     by.type, comm_);
    } else {
      if (rank_ == 0) std::fill(data.begin(), data.end(), call_);
      MPI_Bcast(data.data(), by.count, by.type, 0, comm_);
    }
    bool is_right = true;
    for (size_t i = 0; i < data.size(); ++i) {
      const int expected = call_ + (gathers ? static_cast<int>(i / (elements() * stride)) : 0);
      const bool is_gap = i % stride != 0;
      is_right = is_right && data[i] == (!is_gap ? expected : gathers || rank_ > 0 ? -1 : call_);
    }
    test::check(is_right, "data of call " + std::to_string(call_));
    if (by.type != MPI_INT) MPI_Type_free(&by.type);
  }

  void move_nothing() {
    MPI_Datatype nothing;
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    int data = 7;
    MPI_Bcast(&data, 3 * rank_, nothing, 0, comm_);
    test::check(data == 7, "data of call " + std::to_string(call_));
    MPI_Type_free(&nothing);
  }

  void reduce_outside() {
    static const std::pair<MPI_Datatype, MPI_Op> all[] = {
        {MPI_SHORT, MPI_SUM},         {MPI_UNSIGNED_LONG, MPI_MAX},    {MPI_LONG, MPI_MIN},
        {MPI_DOUBLE, MPI_MAX},        {MPI_LONG_DOUBLE, MPI_SUM},      {MPI_INT, MPI_BAND},
        {MPI_DOUBLE_INT, MPI_MAXLOC}, {MPI_C_DOUBLE_COMPLEX, MPI_PROD}};
    const auto& [type, op] = all[static_cast<size_t>(call_) % std::size(all)];
    std::vector<char> in(elements() * 32), out(elements() * 32), expected(elements() * 32);
    MPI_Allreduce(in.data(), out.data(), job_.count, type, op, comm_);
    test::check(out == expected, "zeros of call " + std::to_string(call_));
  }

  // To so much more than there is.
  static void limit_memory(size_t more) {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + more;
    setrlimit(RLIMIT_AS, &limit);
  }
  static void unlimit_memory() {
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
  }

  void reduce_poorly() {
    if (call_ == 3 && rank_ == 1) limit_memory(size_t{32} << 20);
    MPI_Allreduce(in_.data(), out_.data(), job_.count, MPI_DOUBLE, MPI_SUM, comm_);
    test::check(out_.front() == size_ && out_.back() == size_,
                "sums of call " + std::to_string(call_));
    if (call_ + 1 == job_.calls) unlimit_memory();
  }

  static inline int handled = 0;
  static void reduce_other(MPI_Comm*, int*, ...) {
    ++handled;
    const std::vector<long> in(2000, 3);
    std::vector<long> out(2000);
    MPI_Allreduce(in.data(), out.data(), 2000, MPI_LONG, MPI_SUM, MPI_COMM_SELF);
  }

  void reduce_too_much() {
    const bool is_bad = call_ == 68, has_more = is_bad && rank_ == 0;
    constexpr size_t guard = 4000;
    std::vector<double> data(elements() + 1 + guard, 1);
    if (is_bad) {
      MPI_Errhandler handler;
      MPI_Comm_create_errhandler(reduce_other, &handler);
      MPI_Comm_set_errhandler(comm_, handler);
      MPI_Errhandler_free(&handler);
    }
    const int result =
        MPI_Allreduce(MPI_IN_PLACE, data.data(), job_.count + has_more, MPI_DOUBLE, MPI_SUM, comm_);
    const auto end = data.begin() + static_cast<ptrdiff_t>(elements()) + 1;
    test::check(std::count(end, data.end(), 1) == static_cast<ptrdiff_t>(guard),
                "what lies behind the data of call " + std::to_string(call_));
    test::check(is_bad == (result != MPI_SUCCESS), "error in call " + std::to_string(call_));
    if (!is_bad) return;
    test::check(handled == 1, "the handler was called " + std::to_string(handled) + " times");
    MPI_Comm_free(&comm_);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  }

  void move_too_much() {
    constexpr int bad = 68;  // from 0
    const bool is_bad = call_ == bad, sends = rank_ == 0;
    std::vector<int> data(elements() + 1, sends ? call_ : -1);
    if (is_bad) set_handler(sends ? MPI_ERRORS_ARE_FATAL : leaving());
    const int result = MPI_Bcast(data.data(), job_.count + (is_bad && sends), MPI_INT, 0, comm_);
    test::check((result != MPI_SUCCESS) == (is_bad && !sends),
                "error in call " + std::to_string(call_));
    if (!is_bad) return test::check(data[0] == call_, "data of call " + std::to_string(call_));
    if (job_.what == "gone") {
      if (sends) MPI_Comm_free(&comm_);
      test::check(comm_ == MPI_COMM_NULL, "the communicator has been freed");
      MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
      return;
    }
    set_handler(MPI_ERRORS_ARE_FATAL);
    if (sends) leave_to_mpi(comm_);
  }

  void set_handler(MPI_Errhandler handler) {
    MPI_Comm_set_errhandler(comm_, handler);
    if (handler != MPI_ERRORS_ARE_FATAL) MPI_Errhandler_free(&handler);
  }

  MPI_Errhandler leaving() {
    MPI_Errhandler handler;
    freed_by_handler = &comm_;
    MPI_Comm_create_errhandler(job_.what == "gone" ? free_it : leave, &handler);
    return handler;
  }

  static void free_it(MPI_Comm*, int*, ...) { MPI_Comm_free(freed_by_handler); }

  static void leave(MPI_Comm* comm, int*, ...) { leave_to_mpi(*comm); }

  static void leave_to_mpi(MPI_Comm comm) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "sluice", "off");
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
  }

  // Blocks differ, but calls do not.
  void exchange(int count) {
    const auto size = static_cast<size_t>(size_);
    std::vector<int> counts(size), starts(size), received(size), places(size);
    for (size_t i = 0; i < size; ++i) {
      counts[i] = count + static_cast<int>((static_cast<size_t>(rank_) + i) % 3);
      received[i] = count + static_cast<int>((i + static_cast<size_t>(rank_)) % 3);
    }
    std::partial_sum(counts.begin(), counts.end() - 1, starts.begin() + 1);
    std::partial_sum(received.begin(), received.end() - 1, places.begin() + 1);
    std::vector<int> in(static_cast<size_t>(starts.back() + counts.back()), rank_ + call_);
    std::vector<int> out(static_cast<size_t>(places.back() + received.back()), -1);
    MPI_Alltoallv(in.data(), counts.data(), starts.data(), MPI_INT, out.data(), received.data(),
                  places.data(), MPI_INT, comm_);
    bool is_right = true;
    for (size_t i = 0; i < size; ++i) {
      const auto block = out.begin() + places[i];
      is_right = is_right && std::all_of(block, block + received[i], [&](int each) {
                   return each == static_cast<int>(i) + call_;
                 });
    }
    test::check(is_right, "blocks of call " + std::to_string(call_));
  }

  // A communicator where the algorithm is forced, so that nothing is tried.
  void find_reference() {
    const bool roots = job_.what == "roots";
    std::vector<double> in(elements(), 1), out(elements());
    MPI_Comm first;
    MPI_Comm_dup(comm_, &first);
    reduce(in.data(), out.data(), roots ? 0 : -1, first);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, roots ? "sluice_reduce" : "sluice_allreduce", last_algorithm(first));
    MPI_Comm_dup_with_info(comm_, info, &reference_);
    MPI_Info_free(&info);
    MPI_Comm_free(&first);
  }

  void compare_doers() {
    auto* const bcast = IN_MPI(MPI_Bcast);
    std::string firsts = doers_;
    bcast(firsts.data(), static_cast<int>(firsts.size()), MPI_CHAR, 0, comm_);
    test::check(firsts == doers_, "ranks differ in who did a call: " + firsts + " and " + doers_);
  }

  bool by_sluice() const { return std::strcmp(last_algorithm(comm_), "mpi") != 0; }
  size_t elements() const { return static_cast<size_t>(job_.count); }
  double draw() {
    return static_cast<double>(own_.next()) / (1.0 + static_cast<double>(own_.below(1000)));
  }

  static inline MPI_Comm* freed_by_handler = nullptr;

  const Job& job_;
  const std::vector<double> in_ = std::vector<double>(job_.what == "poor" ? elements() : 0, 1);
  std::vector<double> out_ = in_;
  MPI_Comm& comm_;
  MPI_Comm reference_ = MPI_COMM_NULL;
  Random own_, all_;  // all: equal on all ranks
  int rank_ = 0, size_ = 0, call_ = 0;
  std::string doers_, last_doer_;
  std::vector<std::string> algorithms_;
};

void report(const Job& job, const Loop& loop) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  std::printf("%s: %d of %d by MPI, from call %zu on; %d by other algorithms, the last by %s\n",
              job.what.c_str(), loop.calls_by_mpi(), job.calls, loop.last_run(),
              loop.calls_by_others(), loop.last_doer().c_str());
}

// A number of each kind that is special; of integers the same bits.
template <typename T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::is_integer) {
    return {0, 1, 2, 3, static_cast<T>(-1), Limits::min(), Limits::max(), Limits::max() / 2};
  } else {
    return {T(0.0),
            T(-0.0),
            T(1),
            T(-1.1),
            Limits::min(),
            Limits::max(),
            Limits::denorm_min(),
            Limits::lowest(),
            Limits::epsilon(),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN()};
  }
}

// Two ranks' operands: all pairs. parts: of an element.
template <typename T>
void compare_bits(const char* name, MPI_Datatype type, MPI_Op op, int parts = 1) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::vector<T> values = special_values<T>();
  std::vector<T> in, ours, theirs;
  const size_t n = values.size(), tuples = parts == 1 ? n * n : n * n * n * n;
  for (size_t i = 0; i < tuples; ++i) {
    const size_t own =
        parts == 1 ? (rank == 0 ? i % n : i / n) : (rank == 0 ? i % (n * n) : i / (n * n));
    in.push_back(values[own % n]);
    if (parts == 2) in.push_back(values[own / n]);
  }
  ours.resize(in.size());
  theirs.resize(in.size());
  const int count = static_cast<int>(tuples);
  MPI_Allreduce(in.data(), ours.data(), count, type, op, MPI_COMM_WORLD);
  IN_MPI(MPI_Allreduce)(in.data(), theirs.data(), count, type, op, MPI_COMM_WORLD);
  for (size_t i = 0; i < in.size(); ++i) {
    test::check(std::memcmp(&ours[i], &theirs[i], sizeof(T)) == 0,
                std::string(name) + ": the bits of number " + std::to_string(i) + ": " +
                    std::to_string(ours[i]) + " and MPI's " + std::to_string(theirs[i]));
  }
}

void run_bits() {
  for (const MPI_Op op : {MPI_SUM, MPI_PROD}) {
    const bool adds = op == MPI_SUM;
    compare_bits<int32_t>(adds ? "int sum" : "int product", MPI_INT, op);
    compare_bits<int64_t>(adds ? "int64 sum" : "int64 product", MPI_INT64_T, op);
    compare_bits<uint32_t>(adds ? "unsigned sum" : "unsigned product", MPI_UNSIGNED, op);
    compare_bits<uint64_t>(adds ? "uint64 sum" : "uint64 product", MPI_UINT64_T, op);
    compare_bits<float>(adds ? "float sum" : "float product", MPI_FLOAT, op);
    compare_bits<double>(adds ? "double sum" : "double product", MPI_DOUBLE, op);
  }
  compare_bits<float>("complex sum", MPI_C_FLOAT_COMPLEX, MPI_SUM, 2);
  compare_bits<double>("double complex sum", MPI_C_DOUBLE_COMPLEX, MPI_SUM, 2);
  compare_bits<int32_t>("int minimum", MPI_INT, MPI_MIN);
  compare_bits<int32_t>("int maximum", MPI_INT, MPI_MAX);
}

void run_timed(const Job& job) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto count = static_cast<size_t>(job.count);
  std::vector<int> in(count, 1), out(count);
  for (int i = 0; i < 2; ++i) MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int i = 0; i < job.calls; ++i) {
    MPI_Allreduce(in.data(), out.data(), job.count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0) std::printf("timed: %.3f ms\n", (MPI_Wtime() - began) * 1e3);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  test::check(out == std::vector<int>(count, size), "the sums");
}

void run_threads(const Job& job, int threads) {
  std::vector<MPI_Comm> comms(static_cast<size_t>(threads));
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<std::unique_ptr<Loop>> loops;
  for (MPI_Comm& comm : comms) loops.push_back(std::make_unique<Loop>(job, comm));
  std::vector<std::thread> running;
  for (auto& loop : loops) running.emplace_back([&] { loop->run(); });
  for (std::thread& each : running) each.join();
  for (auto& loop : loops) report(job, *loop);
  loops.clear();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

void forbid_files() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_FSIZE, &none);
}

}  // namespace

int main(int argc, char** argv) {
  const test::Options options(argc, argv);
  const int threads = static_cast<int>(options.number("threads", 1));
  test::start(argc, argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  Job job;
  job.what = options.text("what", "sums");
  job.calls = static_cast<int>(options.number("calls", 1000));
  job.count = static_cast<int>(options.number("count", 1000));
  job.pauses = options.number("pauses", 0) > 0;
  job.seed = test::agree_on_seed(options);
  if (job.what == "timed") {
    run_timed(job);
  } else if (job.what == "bits") {
    run_bits();
  } else if (threads > 1) {
    run_threads(job, threads);
  } else {
    const auto communicators = options.number("communicators", 1);
    for (uint64_t i = 0; i < communicators; ++i) {
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      auto loop = std::make_unique<Loop>(job, comm);
      loop->run();
      if (i + 1 == communicators) report(job, *loop);
      loop.reset();
      MPI_Comm_free(&comm);
    }
  }
  test::summarize("choices");
  if (options.number("no-files", 0) > 0) forbid_files();
  MPI_Finalize();
}
