// SPDX-License-Identifier: BSD-3-Clause
//
// failures MODE: faults on one rank, mostly the last.
//   kill FILE, orphan FILE     it is killed while others wait for it; orphan: it leaves a child
//   strike FILE SEED [CALLS]   a random rank is killed at a random moment, after CALLS calls
//   memory, type, starve, hinted, missed, reserve   no memory: to unpack a broadcast, to describe a
//                              type, for each allocation in turn, before new hints, in its first
//                              call on a communicator, in that call on several of them
//   strangers FIRST lower|higher   pairs of ranks connect; in each, one allocation of its lower or
//                              higher rank fails: the FIRST, counted from 0, and those after it
//   unsent TIMES               so many writes to sockets fail for lack of memory in the kernel
//   [no-]descriptors [all]     no descriptors left, after or before its first collective
//   late                       it comes when the others have given up
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"

// After `granted` more allocations by Sluice, and by OpenSSL for it, the next `refused` ones fail.
namespace {
std::atomic<long> granted{-1};  // negative: all allocations succeed
std::atomic<long> refused{1};
// Bytes that they still get, to which what they free is added; negative: as many as they want.
std::atomic<long> left{-1};

// The code of the libraries that count.
struct Code {
  uintptr_t begin = 0, end = 0;
};
std::array<Code, 5> counted;

bool is_counted(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  return std::ranges::any_of(counted, [&](const Code& c) { return at >= c.begin && at < c.end; });
}

bool is_too_much(size_t bytes) {
  if (left.load() < 0) return false;
  const bool is_over = static_cast<long>(bytes) > left.load();
  if (!is_over) left.fetch_sub(static_cast<long>(bytes));
  return is_over;
}

bool refuses(size_t bytes, const void* caller) {
  if ((granted.load() < 0 && left.load() < 0) || !is_counted(caller)) return false;
  if (is_too_much(bytes)) {
    errno = ENOMEM;
    return true;
  }
  if (granted.load() < 0) return false;
  if (granted.load() > 0 || refused.fetch_sub(1) <= 0) {
    granted.fetch_sub(1);
    return false;
  }
  if (refused.load() == 0) granted = -1;
  errno = ENOMEM;
  return true;
}

// So many more writes of Sluice's fail.
std::atomic<long> unsent{0};

bool fails_to_send(const void* caller) {
  if (unsent.load() <= 0 || !is_counted(caller)) return false;
  unsent.fetch_sub(1);
  errno = ENOBUFS;
  return true;
}

auto real_sendmsg() {
  static const auto real = reinterpret_cast<decltype(&sendmsg)>(dlsym(RTLD_NEXT, "sendmsg"));
  return real;
}
}  // namespace

#pragma GCC visibility push(default)
extern "C" {
void* __libc_malloc(size_t bytes);              // NOLINT: glibc's own name for it
void* __libc_realloc(void* old, size_t bytes);  // NOLINT
void __libc_free(void* memory);                 // NOLINT

void* malloc(size_t bytes) {
  return refuses(bytes, __builtin_return_address(0)) ? nullptr : __libc_malloc(bytes);
}
void* realloc(void* old, size_t bytes) {
  return refuses(bytes, __builtin_return_address(0)) ? nullptr : __libc_realloc(old, bytes);
}
ssize_t send(int fd, const void* from, size_t bytes, int flags) {
  const iovec run{const_cast<void*>(from), bytes};
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(&run);
  message.msg_iovlen = 1;
  return fails_to_send(__builtin_return_address(0)) ? -1 : real_sendmsg()(fd, &message, flags);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return fails_to_send(__builtin_return_address(0)) ? -1 : real_sendmsg()(fd, message, flags);
}
void free(void* memory) {
  if (left.load() >= 0 && memory && is_counted(__builtin_return_address(0))) {
    left.fetch_add(static_cast<long>(malloc_usable_size(memory)));
  }
  __libc_free(memory);
}
}
#pragma GCC visibility pop

namespace {

using Clock = std::chrono::steady_clock;

using test::rank, test::size;

void sum_up() {
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  test::check(sum == size, "a sum");
}

// A child that inherits what Sluice has open, and does nothing with it.
void leave_a_child() {
  if (fork() != 0) return;
  for (int fd = 0; fd <= 2; ++fd) close(fd);  // mpirun waits until these are closed
  sleep(5);
  _exit(0);
}

// Survivors must get an error within a second after they need the dead rank's data. Every later
// call must fail, too. The survivors' observations go to a file.
void kill_one(const char* account) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == size - 1) std::raise(SIGKILL);
  std::vector<double> from(1 << 20, 1.0), to(from.size());
  const auto began = Clock::now();
  const int result =
      MPI_Allreduce(from.data(), to.data(), 1 << 20, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double took = std::chrono::duration<double>(Clock::now() - began).count();
  const int later = MPI_Barrier(MPI_COMM_WORLD);
  FILE* file = std::fopen(account, "a");
  std::fprintf(file, "rank %d: %s after %.3f s, %s\n", rank,
               result != MPI_SUCCESS ? "an error" : "no error", took,
               later != MPI_SUCCESS ? "and again" : "but no more");
  std::fclose(file);
  usleep(static_cast<useconds_t>(rank) *
         200000);  // if all exit at once, Open MPI's mpirun may hang
  _exit(0);
}

int account_of_death = -1;

extern "C" void note_and_die(int) {
  const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  if (write(account_of_death, &now, sizeof now) == ssize_t{sizeof now}) std::raise(SIGKILL);
}

// A collective of any kind, from a barrier to one longer than a scheduler time slice.
int call_anything(test::Random& random, std::vector<double>& from, std::vector<double>& to) {
  const int root = static_cast<int>(random.below(static_cast<size_t>(size)));
  const int n = 1 << random.below(20), share = n / size;
  switch (random.below(5)) {
    case 0:
      return MPI_Barrier(MPI_COMM_WORLD);
    case 1:
      return MPI_Bcast(to.data(), n, MPI_DOUBLE, root, MPI_COMM_WORLD);
    case 2:
      return MPI_Reduce(from.data(), to.data(), n, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    case 3:
      return MPI_Alltoall(from.data(), share, MPI_DOUBLE, to.data(), share, MPI_DOUBLE,
                          MPI_COMM_WORLD);
    default:
      return MPI_Allreduce(from.data(), to.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

// Kills a random rank at a random moment in a series of collectives. The others report their error
// and how long after the death they got it.
void strike_one(const std::string& account, uint64_t seed, long calls) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  test::Random random(seed);
  const int victim = static_cast<int>(random.below(static_cast<size_t>(size)));
  const auto moment = static_cast<suseconds_t>(1000 + random.below(200000));
  std::vector<double> from(1 << 20, 1.0), to(from.size());
  int result = MPI_SUCCESS;
  while (result == MPI_SUCCESS && calls-- > 0) result = call_anything(random, from, to);
  account_of_death = open((account + ".death").c_str(), O_CREAT | O_RDWR, 0600);
  if (rank == victim) {
    std::signal(SIGALRM, note_and_die);
    const itimerval timer{{0, 0}, {0, moment}};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  while (result == MPI_SUCCESS) result = call_anything(random, from, to);
  const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  double death = 0;
  if (pread(account_of_death, &death, sizeof death, 0) != ssize_t{sizeof death}) death = 0;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  FILE* file = std::fopen(account.c_str(), "a");
  std::fprintf(file, "victim %d, %.3f s: %s\n", victim, now - death, text);
  std::fclose(file);
  usleep(static_cast<useconds_t>(rank) *
         200000);  // if all exit at once, Open MPI's mpirun may hang
  _exit(0);
}

// Limits this process's address space to what it has plus `bytes`.
void leave_room_for(size_t bytes) {
  size_t pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (std::fscanf(file, "%zu", &pages) != 1) test::fail("no /proc/self/statm");
  std::fclose(file);
  const rlimit limit{pages * static_cast<size_t>(getpagesize()) + bytes, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
}

[[noreturn]] void tell_and_go(int result) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  std::printf("rank %d: %s\n", rank, text);
  std::fflush(stdout);
  sleep(1);  // MPICH ends a job as soon as a rank exits like this
  _exit(0);
}

// One rank has no memory to unpack a broadcast into; all ranks must get an error.
void run_out_of_memory() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int count = 100 << 20;
  MPI_Datatype spaced;
  MPI_Type_create_resized(MPI_CHAR, 0, 2, &spaced);
  MPI_Type_commit(&spaced);
  std::vector<char> data(2 * static_cast<size_t>(count));
  if (rank == size - 1) {
    leave_room_for(size_t{32} << 20);
  } else {
    usleep(200'000);  // otherwise the root may rightly be done before
  }
  const int result =
      MPI_Bcast(data.data(), count, rank == size - 1 ? spaced : MPI_CHAR, 0, MPI_COMM_WORLD);
  tell_and_go(result);
}

// One rank has no memory to read its datatype's construction.
void describe_without_memory() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int count = 8 << 20;
  std::vector<int> places(count);
  std::iota(places.begin(), places.end(), 0);
  MPI_Datatype scattered;
  MPI_Type_create_indexed_block(count, 1, places.data(), MPI_CHAR, &scattered);
  MPI_Type_commit(&scattered);
  std::vector<char> data(static_cast<size_t>(count));
  const bool poor = rank == size - 1;
  if (poor) leave_room_for(size_t{4} << 20);
  const int result = MPI_Bcast(data.data(), poor ? 1 : count, poor ? scattered : MPI_CHAR, size - 1,
                               MPI_COMM_WORLD);
  const int later = MPI_Barrier(MPI_COMM_WORLD);
  if (later == MPI_SUCCESS) test::fail("a call after one that failed");
  tell_and_go(result == MPI_SUCCESS ? later : result);
}

int find_code(dl_phdr_info* info, size_t, void*) {
  constexpr std::array names{"/libsluice-openmpi.so", "/libsluice-mpich.so", "/libsluice-mpi5.so",
                             "/libcrypto.so", "/libssl.so"};
  for (size_t name = 0; name < names.size(); ++name) {
    if (!std::strstr(info->dlpi_name, names[name])) continue;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& part = info->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      counted[name].begin = info->dlpi_addr + part.p_vaddr;
      counted[name].end = counted[name].begin + part.p_memsz;
    }
  }
  return 0;
}

// From now on allocations count.
void find_counted() { dl_iterate_phdr(find_code, nullptr); }

// The same with those of OpenSSL, which Sluice's module uses, if the machine has it.
void find_counted_with_openssl() {
  for (const char* library : {"libcrypto.so.3", "libssl.so.3"}) dlopen(library, RTLD_NOW);
  find_counted();
}

// Whether a call failed; in *waited, whether only a deadline ended its wait.
bool fails(int result, int* waited) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (result == MPI_SUCCESS) return false;
  MPI_Error_string(result, text, &length);
  for (const char* late : {"_TIMEOUT)", "is a firewall between?", "came to a halt",
                           "ended before it had proved itself"}) {
    *waited |= std::strstr(text, late) != nullptr;
  }
  return true;
}

// A communicator's first and second call. In the first, one allocation fails on one rank. If that
// call fails on any rank, the second must fail on all. Returns false if no allocation failed.
bool starve_once(long things, MPI_Datatype spaced, int count) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  std::vector<int> from(2 * static_cast<size_t>(count), 1), to(from.size());
  refused = 1;
  if (rank == size - 1) granted = things;
  int failed[2], late = 0;
  failed[0] = fails(MPI_Bcast(from.data(), count, spaced, 0, comm), &late);
  const bool was_short = rank == size - 1 && granted.exchange(-1) < 0;
  failed[1] = fails(MPI_Allreduce(from.data(), to.data(), 1, MPI_INT, MPI_SUM, comm), &late);
  int any = 0, all = 0, lacked = was_short;
  MPI_Allreduce(&failed[0], &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&failed[1], &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &lacked, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &late, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  const std::string which = "without allocation " + std::to_string(things);
  test::check(!late, which + ": somebody waited for ever");
  test::check(any == all, which + (any ? ": not all fail" : ": a later call fails"));
  if (!any) MPI_Comm_free(&comm);
  return lacked;
}

// A call fails on one rank, and the others may not know of it. Then all ranks give hints, which
// sets up a new team. All later calls must fail, without waiting.
void give_hints_after_a_failure() {
  find_counted();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Datatype spaced;
  MPI_Type_create_resized(MPI_INT, 0, 8, &spaced);
  MPI_Type_commit(&spaced);
  std::vector<int> data(20000, 1);
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  const bool poor = rank == size - 1;
  if (poor) {
    usleep(200'000);  // the root does not wait for this rank
    granted = 0;
    refused = 1;
  }
  const int result = MPI_Bcast(data.data(), 1000, spaced, 0, comm);
  granted = -1;
  if (poor) test::check(result != MPI_SUCCESS, "one rank has no memory");
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "sluice_bcast", "binomial");
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
  for (int i = 0; i < 2; ++i) {
    test::check(MPI_Bcast(data.data(), 1, MPI_INT, 0, comm) != MPI_SUCCESS, "all fail");
  }
}

// In its first call on a communicator one rank has no memory at all; it may take part in the next
// set-up. All calls on that communicator must fail.
void miss_a_communicator() {
  find_counted();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const bool poor = rank == size - 1;
  int one = 1, sum = 0;
  if (poor) {
    refused = 1000;
    granted = 0;
  }
  for (int i = 0; i < 3; ++i) {
    const int result = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    granted = -1;
    test::check(result != MPI_SUCCESS, "all fail");
  }
}

// In its first call on a communicator one rank has no memory but Sluice's reserve, and it makes no
// other call there. Then it has memory again, until the next communicator. Nobody waits for ever.
void live_on_the_reserve() {
  find_counted();
  const bool poor = rank == size - 1;
  int one = 1, sum = 0, late = 0;
  for (int i = 0; i < 5; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (poor) left = 0;
    (void)fails(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), &late);
    if (poor) test::check(left.exchange(-1) > 0, "the reserve is released");
    sum_up();
  }
  test::check(!late, "somebody waited for ever");
}

void starve() {
  find_counted();
  MPI_Datatype spaced;
  MPI_Type_vector(1, 1, 2, MPI_INT, &spaced);
  MPI_Type_create_resized(spaced, 0, 8, &spaced);
  MPI_Type_commit(&spaced);
  long things = 0;
  while (starve_once(things, spaced, 1000)) ++things;
  test::check(things > 10, "allocations are refused");
  if (rank == 0) std::printf("%ld allocations\n", things);
}

// A first and a second call of two ranks that have no connection yet. In the first, one allocation
// fails on one of them. Both calls fail on both, or the second on none. What the pair finds goes
// through MPI. Returns false if no allocation failed.
bool starve_pair(MPI_Comm comm, long things, bool poor) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  std::vector<int> from(2000, 1), to(2000);
  refused = 1;
  if (poor) granted = things;
  int found[4] = {};
  found[0] = fails(MPI_Bcast(from.data(), 1000, MPI_INT, 0, comm), &found[3]);
  found[1] = poor && granted.exchange(-1) < 0;
  found[2] = fails(MPI_Allreduce(from.data(), to.data(), 1000, MPI_INT, MPI_SUM, comm), &found[3]);
  const bool is_right = found[2] || std::ranges::all_of(to.begin(), to.begin() + 1000,
                                                        [](int sum) { return sum == 2; });
  int any[4], second_fails = 0;
  IN_MPI(MPI_Allreduce)(found, any, 4, MPI_INT, MPI_MAX, comm);
  IN_MPI(MPI_Allreduce)(&found[2], &second_fails, 1, MPI_INT, MPI_MIN, comm);
  const std::string which = "without allocation " + std::to_string(things);
  test::check(!any[3], which + ": somebody waited for ever");
  test::check(any[2] == second_fails, which + ": not all fail");
  test::check(second_fails || !any[0], which + ": a call fails, and a later one does not");
  test::check(is_right, which + ": the sum is right");
  if (!any[2]) MPI_Comm_free(&comm);
  return any[1];
}

// Pairs as in a round-robin tournament: rank size - 1 stays, the others move on.
void starve_pairs(long first, bool of_lower) {
  find_counted_with_openssl();
  const int moving = size - 1;
  int shorts = 0, sum = 0;
  for (int round = 0; round < moving; ++round) {
    const int opposite = (2 * round - rank + moving) % moving;
    int peer = opposite == rank ? moving : opposite;
    if (rank == moving) peer = round;
    const int low = std::min(rank, peer);
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, &pair);
    const long things = first + static_cast<long>(round) * size + low;
    shorts += starve_pair(pair, things, (rank == low) == of_lower);
  }
  IN_MPI(MPI_Allreduce)(&shorts, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d pairs lacked one, %d rounds of %d\n", sum / 2, moving, size);
}

// The kernel lacks memory to send what one rank writes. If that passes, all goes on; if not, the
// rank says so, in later calls and on later communicators too.
void write_without_memory(long times) {
  find_counted();
  const bool poor = rank == size - 1;
  if (poor) unsent = times;
  int result = MPI_SUCCESS;
  for (int i = 0; i < 3; ++i) {
    MPI_Comm comm;
    IN_MPI(MPI_Comm_dup)(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    char text[MPI_MAX_ERROR_STRING] = "no error";
    int one = 1, sum = 0, length = 0;
    result = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (result != MPI_SUCCESS) MPI_Error_string(result, text, &length);
    if (poor) unsent = 0;
    std::printf("rank %d: %s\n", rank, result == MPI_SUCCESS && sum != size ? "wrong" : text);
  }
  if (result != MPI_SUCCESS) tell_and_go(result);
}

// Rank 0, or all ranks, use up their descriptors.
void use_up_descriptors(bool all) {
  if (rank != 0 && !all) return;
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 200;
  setrlimit(RLIMIT_NOFILE, &limit);
  while (dup(1) >= 0) continue;
}

// Sluice goes on with communicators that have a team; MPI gets new ones.
void make_do_without_descriptors(bool all) {
  use_up_descriptors(all);
  for (const bool backwards : {false, true}) {
    MPI_Comm other;
    int sum = 0, one = 1, ranks = 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 1 && !backwards, backwards ? -rank : rank, &other);
    MPI_Comm_size(other, &ranks);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other);
    test::check(sum == ranks, "a sum without descriptors");
    MPI_Comm_free(&other);
  }
}

// The last rank calls when the others have given up.
void come_late() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const bool last = rank == size - 1;
  if (last) sleep(4);
  const int result = MPI_Barrier(MPI_COMM_WORLD);
  // Meanwhile the others are only in MPI.
  int token = 0;
  if (!last) MPI_Recv(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; last && i < size - 1; ++i) MPI_Send(&token, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
  tell_and_go(result);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "late") come_late();
  if (mode == "no-descriptors") use_up_descriptors(argc > 2);
  if (mode == "strangers") {
    starve_pairs(std::atol(argv[2]), argv[3] == std::string("lower"));
    return test::finish("failures");
  }
  sum_up();
  if (mode == "orphan" && rank == size - 1) leave_a_child();
  if (mode == "kill" || mode == "orphan") kill_one(argv[2]);
  if (mode == "strike") {
    strike_one(argv[2], std::strtoull(argv[3], nullptr, 0), argc > 4 ? std::atol(argv[4]) : 0);
  }
  if (mode == "memory") run_out_of_memory();
  if (mode == "type") describe_without_memory();
  if (mode == "starve") starve();
  if (mode == "hinted") give_hints_after_a_failure();
  if (mode == "reserve") live_on_the_reserve();
  if (mode == "unsent") write_without_memory(std::atol(argv[2]));
  if (mode == "missed") miss_a_communicator();
  if (mode == "descriptors") make_do_without_descriptors(argc > 2);
  sum_up();
  return test::finish("failures");
}
