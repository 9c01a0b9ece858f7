// SPDX-License-Identifier: BSD-3-Clause
//
// offload_failures --driver PATH --what NAME [--how HOW] [--account FILE]: calls that NCCL carries
// and that fail, one device a rank. Mostly it is the last rank, the victim, that something happens
// to. The environment of the stand-in for NCCL says what fails in it.
#include "tests/cuda/offload_failures.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

int victim = 0;
std::string option;
bool may_be_pinned = false;

namespace {

std::string account;          // a file for what ranks that do not end well have to say
bool may_be_left = false;     // of Sluice's, at the end: a context is broken
int64_t retained_before = 0;  // by the program

}  // namespace

int64_t counted(const char* name) { return CUDA(standin_counter)(name); }

MPI_Comm duplicate(bool started) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  if (started) test::start_nccl(made);
  return made;
}

// (Each digit of the number picks one of the ranks that are left.)
MPI_Comm permuted(int which) {
  std::vector<int> left, order;
  for (int i = 0; i < size; ++i) left.push_back(i);
  for (int n = size; n > 0; which /= n--) {
    const auto place = left.begin() + which % n;
    order.push_back(*place);
    left.erase(place);
  }
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, order[static_cast<size_t>(rank)], &made);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}

std::string text_of(int result) {
  if (result == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  return text;
}

std::string sum(MPI_Comm comm, size_t count) {
  int members = 0, own = 0;
  MPI_Comm_size(comm, &members);
  MPI_Comm_rank(comm, &own);
  std::vector<int> values(count), sums(count);
  for (size_t i = 0; i < count; ++i) {
    const int value = static_cast<int>(i % 101);
    values[i] = value + own;
    sums[i] = members * value + members * (members - 1) / 2;
  }
  KindMemory data(Kind::device, count * sizeof(int));
  data.put(values);
  const int result =
      MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(count), MPI_INT, MPI_SUM, comm);
  if (result == MPI_SUCCESS) test::check(data.get<int>(count) == sums, "a sum");
  return text_of(result);
}

bool all(bool holds) {
  int least = holds;
  IN_MPI(MPI_Allreduce)(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return least != 0;
}

void expect_failure(MPI_Comm comm, const std::string& text) {
  std::printf("rank %d: %s\n", rank, text.c_str());
  test::check(!text.empty(), "an error");
  const bool names = text.find("rank " + std::to_string(victim)) != std::string::npos;
  test::check(rank == victim || names, "the error names the rank: " + text);
  test::check(!sum(comm).empty() && MPI_Barrier(comm) != MPI_SUCCESS, "later calls fail, too");
}

void expect_sums(MPI_Comm comm, int calls, bool by_nccl) {
  for (int call = 0; call < calls; ++call) {
    const std::string text = sum(comm);
    test::check(text.empty(), text);
    const std::string by = test::algorithm_of(comm);
    test::check((by == "nccl") == by_nccl, "a sum by " + by);
  }
}

namespace {

// Communicators of the stand-in that begin now have no job that is an error. (In place, because
// MPI's threads read the environment at any time: setenv may free what they read.)
void allow_no_more_errors() {
  if (char* const setting = std::getenv("NCCL_STANDIN_ERROR")) *setting = '0';
}

// The victim's third job is an error. Its group is given up; other communicators of these processes
// go by the host, and those of others by NCCL.
void error() {
  MPI_Comm comm = duplicate(true), other = duplicate(true);
  allow_no_more_errors();
  MPI_Comm reversed = permuted(size > 2 ? 3 : 1);
  test::start_nccl(reversed);
  expect_failure(comm, sum(comm));
  expect_sums(other, 20, false);
  expect_sums(reversed, 5, true);
  MPI_Comm late = duplicate(false);
  expect_sums(late, 20, false);
  if (size > 2) test::start_nccl(permuted(2));  // in the place of the group that has ended
  for (MPI_Comm* each : {&comm, &other, &late}) MPI_Comm_free(each);
}

// Says what this rank saw, and leaves without MPI_Finalize, because the victim is dead.
[[noreturn]] void tell_and_leave(MPI_Comm comm, const std::string& text) {
  const std::string later = sum(comm);
  FILE* const file = std::fopen(account.c_str(), "a");
  std::fprintf(file, "rank %d: %s\n", rank, text.empty() || later.empty() ? "" : text.c_str());
  std::fclose(file);
  usleep(static_cast<useconds_t>(rank) * 200000);  // if all exit at once, mpirun may hang
  _exit(0);
}

// The victim is killed: before a vote, or (how: job, by NCCL_STANDIN_JOB) when it has voted, so
// that the others are in NCCL.
void killed() {
  MPI_Comm comm = duplicate(true);
  expect_sums(comm, 1, true);
  if (rank == victim && option != "job") std::raise(SIGKILL);
  tell_and_leave(comm, sum(comm));
}

// The victim comes to a vote when the others have given it up. (Meanwhile it is in MPI alone.)
void late_in_vote() {
  MPI_Comm comm = duplicate(true);
  int token = 0;
  if (rank == victim) {
    MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  const std::string text = sum(comm);
  if (rank == 0) MPI_Send(&token, 1, MPI_INT, victim, 0, MPI_COMM_WORLD);
  std::printf("rank %d: %s\n", rank, text.c_str());
  test::check(!text.empty() && !sum(comm).empty(), "this call and the next fail");
  expect_sums(duplicate(false), 20, false);
}

// The victim's job does not end: the device does other things (how: held; NCCL can't be ended
// there), or NCCL is stuck (NCCL_STANDIN_JOB). The others have voted, and wait in NCCL.
void stuck() {
  constexpr int count = 20000;
  MPI_Comm comm = duplicate(true);
  KindMemory data(Kind::device, count * sizeof(int));
  data.put(std::vector<int>(count, 1));
  if (rank == victim && option == "held") CUDA(standin_hold)();
  const int result = MPI_Allreduce(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_SUM, comm);
  CUDA(standin_release)();
  std::printf("rank %d: %s\n", rank, text_of(result).c_str());
  test::check(result != MPI_SUCCESS && !sum(comm).empty(), "this call and the next fail");
  expect_sums(duplicate(false), 20, false);
}

// Init fails, hangs or is late on a rank.
void init() {
  MPI_Comm comm = duplicate(false);
  if (option == "late") {
    test::start_nccl(comm);
    return expect_sums(comm, 10, true);
  }
  const auto has_begun = [] { return counted("nccl_communicators") > 0; };
  const auto is_over = [] { return counted("nccl_aborts") > 0; };
  while (!all(option == "fails" ? is_over() : has_begun())) expect_sums(comm, 1, false);
  expect_sums(comm, 50, false);
  expect_sums(duplicate(false), 50, false);
}

// The victim's data is not dense, and can't be copied from the device when all have voted.
void copy() {
  constexpr int count = 30000;
  MPI_Comm comm = duplicate(true);
  MPI_Datatype spaced = MPI_DATATYPE_NULL;
  MPI_Type_vector(count, 1, 2, MPI_INT, &spaced);
  MPI_Type_commit(&spaced);
  KindMemory data(Kind::device, 2 * count * sizeof(int));
  const bool is_victim = rank == victim;
  const auto broadcast = [&] {
    return MPI_Bcast(data.data(), is_victim ? 1 : count, is_victim ? spaced : MPI_INT, victim,
                     comm);
  };
  test::check(broadcast() == MPI_SUCCESS && test::algorithm_of(comm) == "nccl", "a broadcast");
  if (is_victim) CUDA(standin_fail)("copy", "1");
  may_be_left = is_victim;
  const std::string text = text_of(broadcast());
  std::printf("rank %d: %s\n", rank, text.c_str());
  const bool names = text.find("rank " + std::to_string(victim)) != std::string::npos;
  test::check(!text.empty() && (is_victim || names), "an error: " + text);
  test::check(MPI_Barrier(comm) != MPI_SUCCESS, "later calls fail, too");
}

// The program resets the victim's device. NCCL can't be ended there, so the others keep their part.
void reset() {
  MPI_Comm comm = duplicate(true);
  expect_sums(comm, 3, true);
  if (rank == victim) {
    CUcontext context = nullptr;
    test::expect_success(CUDA(cuDevicePrimaryCtxReset_v2)(rank), "cuDevicePrimaryCtxReset");
    test::expect_success(CUDA(cuDevicePrimaryCtxRetain)(&context, rank),
                         "cuDevicePrimaryCtxRetain");
    test::expect_success(CUDA(cuDevicePrimaryCtxRelease_v2)(rank), "cuDevicePrimaryCtxRelease");
    test::expect_success(CUDA(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
  }
  may_be_left = true;
  expect_sums(comm, 20, false);
}

// Two threads with a communicator each, of the same processes or (how: apart) not. One job of the
// first group is an error on the victim. One communicator fails then, and the other goes on.
void threads() {
  MPI_Comm comms[] = {duplicate(true), MPI_COMM_NULL};
  allow_no_more_errors();
  comms[1] = option == "apart" ? permuted(1) : duplicate(false);
  test::start_nccl(comms[1]);
  const CUcontext context = test::primary_contexts()[static_cast<size_t>(rank)];
  int failed[] = {0, 0}, wrong[] = {0, 0};
  std::vector<std::thread> running;
  for (size_t i = 0; i < 2; ++i) {
    running.emplace_back([&, i] {
      test::expect_success(CUDA(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
      for (int call = 0; call < 150; ++call) {
        const bool is_error = !sum(comms[i]).empty();
        wrong[i] += failed[i] > 0 && !is_error;
        failed[i] += is_error;
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  std::printf("rank %d: %d and %d calls failed\n", rank, failed[0], failed[1]);
  test::check(wrong[0] + wrong[1] == 0, "later calls fail, too");
  for (int i = 0; i < 2; ++i) {
    const bool any = !all(failed[i] == 0);
    test::check(any == (failed[i] > 0), "a communicator fails on all ranks, or on none");
  }
  test::check((failed[0] > 0) != (failed[1] > 0), "one communicator fails");
}

struct Part {
  const char* name;
  void (*run)();
};
const Part parts[] = {{"error", error},
                      {"killed", killed},
                      {"late-in-vote", late_in_vote},
                      {"stuck", stuck},
                      {"init", init},
                      {"copy", copy},
                      {"reset", reset},
                      {"threads", threads},
                      {"unable", unable},
                      {"reasons", reasons},
                      {"scratch", scratch},
                      {"finalize-early", finalize_early},
                      {"free", free_in_any_state},
                      {"many", many},
                      {"hints", hints},
                      {"forks", forks},
                      {"mismatches", mismatches}};

// After MPI_Finalize: nothing of Sluice's is left.
bool is_clean() {
  const std::pair<const char*, int64_t> expected[] = {{"misuse", 0},
                                                      {"nccl_communicators", 0},
                                                      {"nccl_running", 0},
                                                      {"streams", 0},
                                                      {"events", 0},
                                                      {"pinned", 0},
                                                      {"retained", retained_before}};
  bool clean = true;
  for (const auto& [name, value] : expected) {
    if (counted(name) == value || (may_be_pinned && std::string(name) == "pinned")) continue;
    std::printf("rank %d: at the end, %s: %d\n", rank, name, static_cast<int>(counted(name)));
    clean = false;
    if (may_be_left) break;
  }
  return clean || (may_be_left && counted("misuse") == 0);
}

}  // namespace

int main(int argc, char** argv) {
  const test::Options options(argc, argv);
  const std::string what = options.text("what", "");
  option = options.text("how", "");
  account = options.text("account", "");
  test::start(argc, argv, what == "threads" ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  victim = size - 1;
  const int device = option == "shared" && rank == victim ? 0 : rank;
  test::load_driver(options.text("driver", "libcuda.so.1"), device);
  retained_before = counted("retained");
  for (const Part& part : parts) {
    if (what == part.name) part.run();
  }
  test::finish("offload_failures");
  return is_clean() ? 0 : 1;
}
