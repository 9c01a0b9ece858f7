// SPDX-License-Identifier: BSD-3-Clause
//
// What the MPI test programs share: checks, random numbers that all ranks agree on, and the way to
// MPI's own functions past Sluice.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace test {

// splitmix64 (Steele, Lea and Flood, 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // 0 to n - 1.
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

// The seed of --seed, or one drawn by rank 0; printed, and the same on all ranks. MPI is running.
uint64_t agree_on_seed(const Options& options);

// Ends the job with a message.
[[noreturn]] void fail(const std::string& message);
// Counts a check; ends the job if it does not hold.
void check(bool holds, const std::string& message);
// Prints how many checks held on all ranks; fails if there was none.
void summarize(const char* program);

// This process's memory.
size_t resident_bytes();

// The function of that name in the MPI library itself ("PMPI_Allreduce"), which a preloaded Sluice
// does not stand in for.
void* find_in_mpi(const char* name);
template <typename Function>
Function* in_mpi(Function*, const char* name) {
  return reinterpret_cast<Function*>(find_in_mpi(name));
}
#define IN_MPI(function) test::in_mpi(&P##function, "P" #function)

// The version of Sluice in this process; nullptr without it.
const char* sluice_in_process();

}  // namespace test
