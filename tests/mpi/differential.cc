// SPDX-License-Identifier: BSD-3-Clause
//
// differential [--seed S] [--cases N] [--from N | --case N] [--only MPI_FUNCTION] [--bytes MOST]
// [--limit SECONDS] [--break result|gap|guard|input|bits] [--driver PATH [--nccl 1]]: compares
// Sluice with MPI on random calls. Each case is one collective with random arguments (trial.h),
// called through Sluice and through MPI's own function. Integers must be equal; floating-point
// numbers may differ by what reordering allows (rounding.h); bytes outside the result must be
// unchanged. A failure prints the command that repeats the case. --break corrupts Sluice's results,
// to check that the program can fail. With a CUDA driver, each buffer of Sluice's calls is in
// memory of a random kind; with --nccl most are on a device that this rank has for itself, and the
// communicators that last begin when NCCL carries their calls.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "tests/cuda/nccl_calls.h"
#include "tests/mpi/trial.h"

namespace {

using test::Damage;
using test::Trial;

const Trial* current = nullptr;

// A case takes too long, or crashes. (Not async-signal-safe; a second signal ends the process.)
extern "C" void stop(int signal) {
  alarm(5);
  if (current) {
    std::fprintf(stderr, "FAILED: %s%s\n", current->describe().c_str(),
                 signal == SIGALRM ? "it takes too long" : strsignal(signal));
  }
  std::fflush(nullptr);
  _exit(3);
}

// Receives errors from MPI and from Sluice.
void report_error(MPI_Comm*, int* code, ...) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(*code, text, &length);
  if (current) current->complain(std::string("an error: ") + text);
  test::fail(text);
}

void watch_signals() {
  struct sigaction action {};
  action.sa_handler = stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) {
    sigaction(signal, &action, nullptr);
  }
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(report_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  MPI_Errhandler_free(&handler);
}

// Ends the job if this case takes longer than `seconds`.
void watch(const Trial& trial, unsigned seconds) {
  current = &trial;
  alarm(seconds);
}

Damage parse_damage(const std::string& word) {
  if (word.empty() || word == "none") return Damage::none;
  if (word == "result") return Damage::result;
  if (word == "gap") return Damage::gap;
  if (word == "guard") return Damage::guard;
  if (word == "input") return Damage::input;
  if (word == "bits") return Damage::bits;
  test::fail("--break takes result, gap, guard, input or bits");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const test::Options options(argc, argv);
  const uint64_t seed = test::agree_on_seed(options);
  const std::string only = options.text("only", ""), single = options.text("case", "");
  const auto limit = static_cast<unsigned>(options.number("limit", 120));
  const uint64_t first = options.number("case", options.number("from", 0));
  const uint64_t count = single.empty() ? options.number("cases", 100) : 1;
  const Damage damage = parse_damage(options.text("break", ""));
  if (const std::string driver = options.text("driver", ""); !driver.empty()) {
    test::use_driver(driver, options.number("nccl", 0) > 0);
  }
  watch_signals();
  std::vector<test::Comm> lasting = test::lasting_comms();
  if (options.number("nccl", 0) > 0) {
    for (const test::Comm& comm : lasting) {
      if (comm.handle != MPI_COMM_NULL) test::start_nccl(comm.handle);
    }
  }
  for (uint64_t number = first; number < first + count; ++number) {
    Trial trial = test::draw_trial(seed, number, only, lasting);
    trial.most_bytes = options.number("bytes", 1 << 20);
    trial.damage = damage;
    watch(trial, limit);
    if (trial.comm.handle == MPI_COMM_NULL) continue;
    const bool reduces = trial.function.find("educe") != std::string::npos;
    reduces ? test::try_reducing(trial) : test::try_moving(trial);
    test::check(true, "");
    if (trial.comm.fresh) MPI_Comm_free(&trial.comm.handle);
  }
  alarm(0);
  current = nullptr;
  test::summarize("differential");
  MPI_Finalize();
}
