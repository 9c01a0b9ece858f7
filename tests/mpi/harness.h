// SPDX-License-Identifier: BSD-3-Clause
//
// Shared code of the MPI test programs: checks, random numbers that are equal on all ranks, and
// access to MPI's own functions, bypassing Sluice.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace test {

// Of MPI_COMM_WORLD, once the job has started.
inline int rank = 0, size = 0;

// Initialises MPI; by MPI_Init unless threads are wanted. Returns the level that it grants.
int start(int& argc, char**& argv, int threads = MPI_THREAD_SINGLE);
// Summarizes the checks and finalises MPI. Returns what main() returns: 0.
int finish(const char* program);

// splitmix64 (Steele, Lea and Flood, 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // Returns 0 to n - 1.
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
  bool chance(size_t one_in) { return below(one_in) == 0; }
  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  uint64_t state_;
};

// Command line: --name value.
class Options {
 public:
  Options(int argc, char** argv) : words_(argv + 1, argv + argc) {}
  std::string text(const std::string& name, const std::string& fallback) const;
  uint64_t number(const std::string& name, uint64_t fallback) const;

 private:
  std::vector<std::string> words_;
};

// The seed from --seed, or one drawn by rank 0. Prints it; equal on all ranks. Needs MPI_Init.
uint64_t agree_on_seed(const Options& options);

// Prints a message and ends the job.
[[noreturn]] void fail(const std::string& message);
// Counts a check; ends the job if `holds` is false.
void check(bool holds, const std::string& message);
// Prints the number of checks that held on all ranks; fails if there were none.
void summarize(const char* program);

// The resident memory of this process.
size_t resident_bytes();

// Looks up a function in the MPI library itself ("PMPI_Allreduce"), bypassing a preloaded Sluice.
void* find_in_mpi(const char* name);
template <typename Function>
Function* in_mpi(Function*, const char* name) {
  return reinterpret_cast<Function*>(find_in_mpi(name));
}
#define IN_MPI(function) test::in_mpi(&P##function, "P" #function)

// The version of Sluice in this process; nullptr if it is not loaded.
const char* sluice_in_process();

}  // namespace test
