// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mpi/harness.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>

namespace test {
namespace {

unsigned long checks = 0;

}  // namespace

int start(int& argc, char**& argv, int threads) {
  int granted = MPI_THREAD_SINGLE;
  if (threads == MPI_THREAD_SINGLE) {
    MPI_Init(&argc, &argv);
  } else {
    MPI_Init_thread(&argc, &argv, threads, &granted);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return granted;
}

int finish(const char* program) {
  summarize(program);
  MPI_Finalize();
  return 0;
}

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::string Options::text(const std::string& name, const std::string& fallback) const {
  for (size_t i = 0; i + 1 < words_.size(); ++i) {
    if (words_[i] == "--" + name) return words_[i + 1];
  }
  return fallback;
}

uint64_t Options::number(const std::string& name, uint64_t fallback) const {
  const std::string value = text(name, "");
  return value.empty() ? fallback : std::strtoull(value.c_str(), nullptr, 0);
}

uint64_t agree_on_seed(const Options& options) {
  uint64_t seed = options.number("seed", std::random_device()());
  IN_MPI(MPI_Bcast)(&seed, sizeof seed, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
  }
  return seed;
}

void fail(const std::string& message) {
  std::fprintf(stderr, "FAILED on rank %d: %s\n", rank, message.c_str());
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

void check(bool holds, const std::string& message) {
  ++checks;
  if (!holds) fail(message);
}

void summarize(const char* program) {
  unsigned long all = 0;
  IN_MPI(MPI_Reduce)(&checks, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  if (all == 0) fail("nothing was checked");
  std::printf("%s: %lu checks held on %d ranks\n", program, all, size);
}

size_t resident_bytes() {
  size_t total = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  check(file && std::fscanf(file, "%zu %zu", &total, &resident) == 2, "/proc/self/statm");
  std::fclose(file);
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

void* find_in_mpi(const char* name) {
  Dl_info mpi{};
  dladdr(dlsym(RTLD_DEFAULT, "PMPI_Comm_size"), &mpi);  // Sluice does not define this one
  void* library = dlopen(mpi.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* found = library ? dlsym(library, name) : nullptr;
  if (!found) {
    std::fprintf(stderr, "FAILED: no %s in the MPI library\n", name);
    std::_Exit(1);
  }
  return found;
}

const char* sluice_in_process() {
  using Version = const char* (*)();
  const auto version = reinterpret_cast<Version>(dlsym(RTLD_DEFAULT, "sluice_version"));
  return version ? version() : nullptr;
}

}  // namespace test
