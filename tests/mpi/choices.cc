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
//   barriers   MPI_Barrier
//   cut        MPI_Bcast. Rank 0 sends too much in call 69, the first timed one of MPI's. The
//              other's error handler leaves the communicator to MPI by a hint, and so does rank 0
//              then
//   gone       The same, but the other's error handler frees the communicator, and so does rank 0;
//              both go on with another one
//   timed      MPI_Allreduce of integers in a bare loop, without checks; prints "timed: N ms"
//
// --communicators: each makes the calls, and is freed; MPI's calls are those of the last one.
// --threads: each with a communicator of its own.
// --no-files: MPI_Finalize may write none (RLIMIT_FSIZE).
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

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
    if (job_.what == "uneven") return exchange();
    if (job_.what == "barriers") return void(MPI_Barrier(comm_));
    if (job_.what == "cut" || job_.what == "gone") return move_too_much();
    test::fail("--what takes sums, doubles, roots, moves, uneven, barriers, cut or gone");
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
  void exchange() {
    const auto size = static_cast<size_t>(size_);
    std::vector<int> counts(size), starts(size), received(size), places(size);
    for (size_t i = 0; i < size; ++i) {
      counts[i] = job_.count + static_cast<int>((static_cast<size_t>(rank_) + i) % 3);
      received[i] = job_.count + static_cast<int>((i + static_cast<size_t>(rank_)) % 3);
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
  int provided = 0;
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  Job job;
  job.what = options.text("what", "sums");
  job.calls = static_cast<int>(options.number("calls", 1000));
  job.count = static_cast<int>(options.number("count", 1000));
  job.pauses = options.number("pauses", 0) > 0;
  job.seed = test::agree_on_seed(options);
  if (job.what == "timed") {
    run_timed(job);
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
