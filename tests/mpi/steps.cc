// SPDX-License-Identifier: BSD-3-Clause
//
// steps [--most N] [--most-anew N] [--function NAME] [--trace FILE] [--sent 1]: counts the
// instructions from the MPI symbol to the first store of the payload. Rank 0 repeats a small call
// with the processor's trap flag set, so that the processor stops after each instruction. The
// signal handler counts the instruction, checks whether it takes a lock, enters the kernel or
// allocates, and whether the payload has arrived in shared memory. The other ranks are already in
// the call, so that rank 0 waits for nothing; if one comes late, the call is made again. x86-64 and
// Linux only.
//
// The way in, to the module's first instruction, is counted, too; and what libsluice.so does of it
// (src/chooser/jumps.h).
//
// Each function is called twice: after an equal call on the communicator, and after a call with
// another count. --most, --most-anew: limits on these two instruction counts. --function: this one
// alone. --trace: writes the addresses of its first call's instructions in Sluice's module, for
// addr2line. --sent: over a socket, to the system call that sends the payload.
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>

#include "tests/mpi/harness.h"

namespace {

constexpr uint64_t trap_flag = 0x100;
constexpr double usual = 1.5, marked = 0x1.23456789abcdep+99;

// What the signal handler has recorded.
struct Watch {
  std::vector<const double*> places;  // where the payload was seen to go
  uint64_t steps = 0, steps_to_store = 0;
  uint64_t locks = 0, kernel = 0, allocations = 0;
  bool to_kernel = false;  // the payload goes to a system call
  std::vector<uint64_t> trace;
};
Watch watch;

bool sends(long long call) {
  return call == SYS_sendto || call == SYS_sendmsg || call == SYS_writev;
}

// Decodes prefixes and opcode, and counts instructions that a short path must not contain. call:
// which system call it would be.
void classify(const uint8_t* at, long long call) {
  bool locked = false;
  for (;; ++at) {
    if (*at == 0xf0) locked = true;
    const bool prefix = *at == 0xf0 || *at == 0x66 || *at == 0xf2 || *at == 0xf3 || *at == 0x64 ||
                        *at == 0x2e || *at == 0x3e || (*at & 0xf0) == 0x40;
    if (!prefix) break;
  }
  const bool exchanges = (*at == 0x86 || *at == 0x87) && at[1] < 0xc0;  // memory: locks implicitly
  if (locked || exchanges) ++watch.locks;
  if (at[0] != 0x0f || at[1] != 0x05) return;
  if (watch.to_kernel && sends(call) && watch.steps_to_store == 0) {
    watch.steps_to_store = watch.steps;
  } else if (watch.steps_to_store == 0 || !watch.to_kernel) {
    ++watch.kernel;
  }
}

void on_step(int, siginfo_t*, void* context) {
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto at = static_cast<uint64_t>(registers[REG_RIP]);
  ++watch.steps;
  if (watch.trace.size() < watch.trace.capacity()) watch.trace.push_back(at);
  classify(reinterpret_cast<const uint8_t*>(at), registers[REG_RAX]);
  if (at == reinterpret_cast<uint64_t>(&std::malloc)) ++watch.allocations;
  if (watch.steps_to_store > 0) return;
  for (const double* place : watch.places) {
    if (*place == marked) watch.steps_to_store = watch.steps;
  }
}

// (Keeps clear of the caller's red zone.)
void set_stepping(bool on) {
  if (on) {
    asm volatile(
        "lea -128(%%rsp), %%rsp\n pushfq\n orq %0, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::"i"(
            trap_flag)
        : "cc", "memory");
  } else {
    asm volatile(
        "lea -128(%%rsp), %%rsp\n pushfq\n andq %0, (%%rsp)\n popfq\n lea 128(%%rsp), "
        "%%rsp" ::"i"(~static_cast<int64_t>(trap_flag))
        : "cc", "memory");
  }
}

// The mappings that are shared with other processes.
std::vector<std::span<const double>> shared_memory() {
  std::vector<std::span<const double>> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char mode[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, mode) != 3) continue;
    if (std::string(mode) != "rw-s") continue;
    found.emplace_back(reinterpret_cast<const double*>(begin),
                       reinterpret_cast<const double*>(end));
  }
  return found;
}

constexpr uint64_t unlimited = uint64_t{1} << 32;

using Call = void (*)(double* in, double* out, int count);

struct Function {
  const char* name;
  Call call;
  uint64_t allowance = 1;  // times the limits: arguments with arrays take longer to interpret
};

const Function functions[] = {
    {"MPI_Allreduce",
     [](double* in, double* out, int count) {
       MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
     }},
    {"MPI_Reduce",
     [](double* in, double* out, int count) {
       MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
     }},
    {"MPI_Bcast",
     [](double* in, double*, int count) { MPI_Bcast(in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD); }},
    {"MPI_Allgather",
     [](double* in, double* out, int count) {
       MPI_Allgather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, MPI_COMM_WORLD);
     }},
    {"MPI_Exscan",
     [](double* in, double* out, int count) {
       MPI_Exscan(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
     }},
    {"MPI_Gather",
     [](double* in, double* out, int count) {
       MPI_Gather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, 1, MPI_COMM_WORLD);
     }},
    {"MPI_Gatherv",
     [](double* in, double* out, int count) {
       const int counts[] = {count, count}, places[] = {0, count};
       MPI_Gatherv(in, count, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, 1, MPI_COMM_WORLD);
     },
     2},
    {"MPI_Scatter",
     [](double* in, double* out, int count) {
       const double both[] = {in[0], in[0], in[0], in[0]};
       MPI_Scatter(both, count, MPI_DOUBLE, out, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
     }},
    {"MPI_Scatterv",
     [](double* in, double* out, int count) {
       const double both[] = {in[0], in[0], in[0], in[0]};
       const int counts[] = {count, count}, places[] = {0, count};
       MPI_Scatterv(both, counts, places, MPI_DOUBLE, out, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
     },
     2},
};

// Finds where the payload is stored: calls the function so often that each place is used.
void find_places(const Function& function, double* out) {
  double in = usual;
  watch.places.clear();
  for (int i = 0; i < 1000; ++i) function.call(&in, out, 1);
  if (watch.to_kernel) return;
  for (const auto memory : shared_memory()) {
    for (const double& place : memory) {
      if (place == usual) watch.places.push_back(&place);
    }
  }
}

void step_through(const Function& function, double* out) {
  double in = marked;
  Watch fresh;
  fresh.places = std::move(watch.places);
  fresh.to_kernel = watch.to_kernel;
  fresh.trace.reserve(4096);
  watch = std::move(fresh);
  set_stepping(true);
  function.call(&in, out, 1);
  set_stepping(false);
}

void write_trace(const std::string& path) {
  Dl_info sluice{};
  for (const uint64_t at : watch.trace) {  // (The first are in libsluice.so.)
    const bool is_known = dladdr(reinterpret_cast<void*>(at), &sluice) != 0 && sluice.dli_fname;
    if (is_known && std::strstr(sluice.dli_fname, "/libsluice-")) break;
  }
  std::ofstream file(path);
  const auto base = reinterpret_cast<uint64_t>(sluice.dli_fbase);
  for (size_t i = 0; i < watch.trace.size(); ++i) {
    file << std::hex << "0x" << watch.trace[i] - base << (i < watch.steps_to_store ? "" : " out")
         << "\n";
  }
}

// The instructions before the first in the module: the program's, and of these those that
// libsluice.so does to choose the module.
struct WayIn {
  size_t all = 0, chooser = 0;
};

WayIn way_in() {
  WayIn way;
  for (const uint64_t at : watch.trace) {
    Dl_info about{};
    const bool is_known = dladdr(reinterpret_cast<void*>(at), &about) != 0 && about.dli_fname;
    if (is_known && std::strstr(about.dli_fname, "/libsluice-")) break;
    if (is_known && std::strstr(about.dli_fname, "/libsluice.so")) ++way.chooser;
    ++way.all;
  }
  return way;
}

void judge(const std::string& name, uint64_t most) {
  const WayIn way = way_in();
  std::printf(
      "%s: %zu instructions to the first store or send, %zu in all, %zu of the way in, %zu to "
      "choose\n",
      name.c_str(), static_cast<size_t>(watch.steps_to_store), static_cast<size_t>(watch.steps),
      way.all, way.chooser);
  test::check(way.chooser == 1, name + ": the choice of the module takes other than one jump");
  test::check(watch.steps_to_store > 0, name + ": its payload was not seen to go");
  test::check(watch.steps_to_store <= most,
              name + ": the first store comes after more than " + std::to_string(most));
  if (watch.to_kernel) return;
  test::check(watch.locks == 0, name + ": locked instructions: " + std::to_string(watch.locks));
  test::check(watch.kernel == 0, name + ": system calls: " + std::to_string(watch.kernel));
  test::check(watch.allocations == 0, name + ": allocations: " + std::to_string(watch.allocations));
}

// A rank that waits for others counts what it does meanwhile, which includes system calls. What a
// call always does is seen in every try.
constexpr int most_tries = 50;

bool is_as_wanted(uint64_t most) {
  const bool is_short =
      watch.to_kernel || (watch.locks == 0 && watch.kernel == 0 && watch.allocations == 0);
  return watch.steps_to_store > 0 && watch.steps_to_store <= most && is_short;
}

// anew: the call before the measured one has another count.
void make_call(const Function& function, bool anew, int rank, int size) {
  std::vector<double> in(2, 2.5), out(2 * static_cast<size_t>(size));
  find_places(function, out.data());
  if (anew) function.call(in.data(), out.data(), 2);
  if (rank != 0) {
    function.call(in.data(), out.data(), 1);
    return;
  }
  usleep(50000);  // by then the other ranks are mostly in the call
  step_through(function, out.data());
}

// Rank 0 tells the others whether the call is made again. (Sluice leaves these messages to MPI.)
bool share(bool again, int rank, int size) {
  int said = again;
  for (int other = 1; rank == 0 && other < size; ++other) {
    MPI_Send(&said, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
  }
  if (rank != 0) MPI_Recv(&said, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return said != 0;
}

void follow(const Function& function, bool anew, uint64_t limit) {
  const uint64_t most = limit * function.allowance;
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  bool again = true;
  for (int i = 1; again; ++i) {
    make_call(function, anew, rank, size);
    again = share(rank == 0 && !is_as_wanted(most) && i < most_tries, rank, size);
  }
  if (rank == 0) judge(function.name + std::string(anew ? ", anew" : ""), most);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const uint64_t most = options.number("most", unlimited);
  const uint64_t most_anew = options.number("most-anew", unlimited);
  const std::string trace = options.text("trace", "");
  watch.to_kernel = options.number("sent", 0) != 0;
  struct sigaction action {};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);
  const std::string only = options.text("function", "");
  for (const Function& function : functions) {
    if (!only.empty() && only != function.name) continue;
    follow(function, false, most);
    if (!trace.empty()) write_trace(trace);
    follow(function, true, most_anew);
  }
  return test::finish("steps");
}
