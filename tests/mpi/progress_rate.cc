// SPDX-License-Identifier: BSD-3-Clause
//
// progress_rate [--operations N] [--tries N] [--factor N] [--slack MICROSECONDS]: how quickly MPI
// progresses on rank 0 while rank 0 waits in MPI_Barrier, alternately in Sluice's and in MPI's own.
// Rank 1 makes operations that need rank 0's MPI library, and times each. Other ranks only wait.
// For each kind of barrier the best try's median counts, because rank 0 may get little processor
// time in a try. Sluice's may be at most factor times MPI's, plus slack.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

constexpr unsigned watchdog = 120;
constexpr int message = 64;  // bytes

using test::rank;

using Barrier = int (*)(MPI_Comm);

// What rank 0 prepares, and what rank 1 does with it.
class Work {
 public:
  virtual ~Work() = default;
  virtual void prepare(int operations) { (void)operations; }  // on rank 0
  virtual void operate() = 0;                                 // on rank 1
  virtual void finish() {}                                    // on rank 0
};

class OnWindow : public Work {
 public:
  OnWindow() {
    MPI_Win_create(memory_, sizeof memory_, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window_);
    MPI_Win_lock_all(0, window_);
  }
  ~OnWindow() override {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  OnWindow(const OnWindow&) = delete;
  OnWindow& operator=(const OnWindow&) = delete;

 protected:
  MPI_Win window() const { return window_; }

 private:
  long memory_[16] = {};
  MPI_Win window_;
};

class FetchAndOp final : public OnWindow {
  void operate() override {
    const long one = 1;
    long before = 0;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, window());
    MPI_Win_flush(0, window());
    test::check(before == expected_++, "a counter goes up by one at a time");
  }
  long expected_ = 0;
};

class Get final : public OnWindow {
  void operate() override {
    long data[message / sizeof(long)];
    MPI_Get(data, message / sizeof(long), MPI_LONG, 0, 0, message / sizeof(long), MPI_LONG,
            window());
    MPI_Win_flush(0, window());
  }
};

class Ssend final : public Work {
  void prepare(int operations) override {
    const auto count = static_cast<size_t>(operations);
    requests_.resize(count);
    memory_.resize(count * message);
    for (size_t i = 0; i < count; ++i) {
      MPI_Irecv(&memory_[i * message], message, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests_[i]);
    }
  }
  void operate() override {
    const char data[message] = {};
    MPI_Ssend(data, message, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  }
  void finish() override {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }
  std::vector<MPI_Request> requests_;
  std::vector<char> memory_;
};

// The median time of an operation on rank 1, in microseconds.
double time_try(Work& work, Barrier barrier, int operations) {
  std::vector<double> times;
  if (rank == 0) work.prepare(operations);
  IN_MPI(MPI_Barrier)(MPI_COMM_WORLD);
  for (int i = 0; rank == 1 && i < operations; ++i) {
    const double began = MPI_Wtime();
    work.operate();
    times.push_back((MPI_Wtime() - began) * 1e6);
  }
  barrier(MPI_COMM_WORLD);
  if (rank == 0) work.finish();
  std::sort(times.begin(), times.end());
  return rank == 1 ? times[times.size() / 2] : 0;
}

struct Limits {
  int operations, tries;
  double factor, slack;
};

void compare(const char* name, Work& work, const Limits& limits) {
  alarm(watchdog);
  double alone = 1e9, ours = 1e9;
  for (int i = 0; i < limits.tries; ++i) {
    alone = std::min(alone, time_try(work, IN_MPI(MPI_Barrier), limits.operations));
    ours = std::min(ours, time_try(work, MPI_Barrier, limits.operations));
  }
  if (rank == 1) {
    std::printf("%s: %.2f us in MPI's own barrier, %.2f in Sluice's (%.1f times)\n", name, alone,
                ours, ours / alone);
    std::fflush(stdout);
    test::check(ours <= limits.factor * alone + limits.slack,
                std::string(name) + ": MPI hardly progresses");
  }
}

void compare_all(const Limits& limits) {
  FetchAndOp fetch_and_op;
  Get get;
  Ssend ssend;
  compare("Fetch_and_op", fetch_and_op, limits);
  compare("Get", get, limits);
  compare("Ssend to a posted Irecv", ssend, limits);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const Limits limits{static_cast<int>(options.number("operations", 500)),
                      static_cast<int>(options.number("tries", 5)),
                      static_cast<double>(options.number("factor", 3)),
                      static_cast<double>(options.number("slack", 0))};
  alarm(watchdog);
  MPI_Barrier(MPI_COMM_WORLD);
  compare_all(limits);
  return test::finish("progress_rate");
}
