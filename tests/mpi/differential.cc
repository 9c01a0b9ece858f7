// SPDX-License-Identifier: BSD-3-Clause
//
// differential [--seed S] [--cases N] [--from N | --case N] [--only MPI_FUNCTION] [--bytes MOST]
// [--limit SECONDS] [--break result|gap|guard|input|bits|hang] [--driver PATH [--own-devices 1]
// [--nccl 1]] [--in-flight MOST [--carried 0]]: compares Sluice with MPI on random calls. Each case
// is one collective with random arguments (trial.h), called through Sluice and through MPI's own
// function. Integers must be equal; floating-point numbers may differ by what reordering allows
// (rounding.h); bytes outside the result must be unchanged. A failure prints the command that
// repeats the case. --break corrupts Sluice's results, to check that the program can fail. With a
// CUDA driver, each buffer of Sluice's calls is in memory of a random kind; with --own-devices most
// are on a device that this rank has for itself, with --nccl too, and the communicators that last
// begin when NCCL carries their calls.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "tests/cuda/nccl_calls.h"
#include "tests/mpi/in_flight.h"
#include "tests/mpi/trial.h"

namespace {

using test::current;
using test::Damage;
using test::Phase;
using test::Trial;

int rank_of_job = 0;
uint64_t case_number = 0;

// A case takes too long, or crashes. If it takes too long, the other ranks are given time to say
// the same before the job ends; and one that is told to end says what it was doing. (Not
// async-signal-safe; a second signal ends the process.)
extern "C" void stop(int signal) {
  constexpr unsigned for_others = 5;
  alarm(for_others + 5);
  const auto in_case = static_cast<unsigned long long>(case_number);
  const char* const doing = test::describe(test::phase.load());
  if (signal == SIGTERM) {
    std::fprintf(stderr, "ENDED on rank %d of the job: in case %llu (%s) it %s\n", rank_of_job,
                 in_case, current ? current->story.c_str() : "of others", doing);
  } else {
    std::fprintf(stderr, "FAILED on rank %d of the job: %s%s; in case %llu it %s\n", rank_of_job,
                 current ? current->describe().c_str() : "",
                 signal == SIGALRM ? "it takes too long" : strsignal(signal), in_case, doing);
  }
  std::fflush(nullptr);
  if (signal == SIGALRM) sleep(for_others);
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
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_of_job);
  for (const int signal : {SIGALRM, SIGTERM, SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) {
    sigaction(signal, &action, nullptr);
  }
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(report_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  MPI_Errhandler_free(&handler);
}

// Ranks that are no members of a case's communicator go on to the next.
void make(Trial& trial) {
  if (trial.comm.handle == MPI_COMM_NULL) return;
  current = &trial;
  test::phase = Phase::preparing;
  test::start(trial)();
  current = nullptr;
  test::check(true, "");
  test::phase = Phase::freeing;
  if (trial.comm.fresh) MPI_Comm_free(&trial.comm.handle);
}

Damage parse_damage(const std::string& word) {
  if (word.empty() || word == "none") return Damage::none;
  if (word == "result") return Damage::result;
  if (word == "gap") return Damage::gap;
  if (word == "guard") return Damage::guard;
  if (word == "input") return Damage::input;
  if (word == "bits") return Damage::bits;
  if (word == "hang") return Damage::hang;
  test::fail("--break takes result, gap, guard, input, bits or hang");
}

struct Cases {
  uint64_t seed = 0, first = 0, count = 0;
  size_t most_bytes = 0;
  Damage damage = Damage::none;
  std::string only;
  unsigned limit = 0;  // seconds for a case, with its communicator
};

void run(const Cases& cases, const std::vector<test::Comm>& lasting) {
  for (uint64_t number = cases.first; number < cases.first + cases.count; ++number) {
    case_number = number;
    test::phase = Phase::drawing;
    alarm(cases.limit);
    Trial trial = test::make_trial(cases.seed, number, 0);
    test::draw(&trial, cases.only, test::draw_comm(lasting, trial.shared));
    trial.most_bytes = cases.most_bytes;
    trial.damage = cases.damage;
    make(trial);
  }
}

void run_in_flight(const Cases& cases, size_t most, test::Flights flights) {
  for (uint64_t number = cases.first; number < cases.first + cases.count; ++number) {
    case_number = number;
    alarm(cases.limit);
    flights.run({cases.seed, number, most, cases.most_bytes, cases.damage});
  }
  alarm(cases.limit);
  flights.summarize();
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const uint64_t seed = test::agree_on_seed(options);
  Cases cases{seed, 0, 0, 0, parse_damage(options.text("break", "")), options.text("only", "")};
  const std::string single = options.text("case", "");
  cases.first = options.number("case", options.number("from", 0));
  cases.count = single.empty() ? options.number("cases", 100) : 1;
  cases.most_bytes = options.number("bytes", 1 << 20);
  cases.limit = static_cast<unsigned>(options.number("limit", 120));
  if (const std::string driver = options.text("driver", ""); !driver.empty()) {
    const bool by_nccl = options.number("nccl", 0) > 0;
    const bool own_devices = by_nccl || options.number("own-devices", 0) > 0;
    const char* const words = by_nccl ? " --nccl 1" : own_devices ? " --own-devices 1" : "";
    test::use_driver(driver, own_devices, words);
  }
  watch_signals();
  std::vector<test::Comm> lasting = test::lasting_comms();
  if (options.number("nccl", 0) > 0) {
    for (const test::Comm& comm : lasting) {
      if (comm.handle != MPI_COMM_NULL) test::start_nccl(comm.handle);
    }
  }
  const std::string most = options.text("in-flight", "");
  if (most.empty()) {
    run(cases, lasting);
  } else {
    const bool is_carried = options.number("carried", 1) > 0;
    test::repeat_with(" --in-flight " + most + (is_carried ? "" : " --carried 0"));
    run_in_flight(cases, options.number("in-flight", 0), {lasting, cases.only, is_carried});
  }
  alarm(0);
  return test::finish("differential");
}
