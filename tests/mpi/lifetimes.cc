// SPDX-License-Identifier: BSD-3-Clause
//
// lifetimes [--rounds N]: makes thousands of communicators, uses each once and frees it: duplicates
// and halves of the world. No descriptor, connection, memory or mapping may stay, and a life may
// touch no new pages. It also prints the cost in time: blocks with Sluice alternate with blocks
// with MPI's own collective.
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

constexpr uint64_t in_block = 40;  // communicators a block: shorter than most disturbances

// This process's resources that could leak.
struct Belongings {
  size_t descriptors = 0, sockets = 0, mappings = 0, kilobytes = 0;
};

size_t count_lines(const char* path) {
  size_t lines = 0;
  FILE* file = std::fopen(path, "r");
  for (int c; (c = std::fgetc(file)) != EOF;) lines += c == '\n';
  std::fclose(file);
  return lines;
}

Belongings look() {
  Belongings found;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    struct stat about {};
    ++found.descriptors;
    if (fstatat(dirfd(folder), entry->d_name, &about, 0) == 0 && S_ISSOCK(about.st_mode)) {
      ++found.sockets;
    }
  }
  closedir(folder);
  found.mappings = count_lines("/proc/self/maps");
  found.kilobytes = test::resident_bytes() / 1024;
  return found;
}

// Names of Sluice in /dev/shm, of all processes.
size_t count_names() {
  size_t count = 0;
  DIR* folder = opendir("/dev/shm");
  while (const dirent* entry = readdir(folder)) {
    count += std::strncmp(entry->d_name, "sluice", 6) == 0;
  }
  closedir(folder);
  return count;
}

using Allreduce = decltype(&MPI_Allreduce);

// Makes, uses and frees one communicator; every fourth is half of the world.
void live(uint64_t number, Allreduce allreduce) {
  MPI_Comm comm;
  if (number % 4 == 3) {
    MPI_Comm_split(MPI_COMM_WORLD, test::rank % 2, test::rank, &comm);
  } else {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  }
  int size = 0;
  double one = 1, sum = 0;
  MPI_Comm_size(comm, &size);
  allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
  test::check(sum == size, "allreduce of a short-lived communicator");
  MPI_Comm_free(&comm);
}

long page_faults() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_minflt;
}

// What communicators cost: microseconds each, for each block of them, and page faults in all.
struct Costs {
  std::vector<double> times;
  long faults = 0;

  void add_block(Allreduce allreduce) {
    IN_MPI(MPI_Barrier)(MPI_COMM_WORLD);
    const long faults_before = page_faults();
    const double began = MPI_Wtime();
    for (uint64_t i = 0; i < in_block; ++i) live(i, allreduce);
    times.push_back((MPI_Wtime() - began) * 1e6 / static_cast<double>(in_block));
    faults += page_faults() - faults_before;
  }
};

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

// The ratio of a communicator's time with Sluice to the time without, on the slowest rank: from the
// medians, and from the blocks that other programs disturbed least.
void compare(uint64_t rounds) {
  const uint64_t blocks = std::max<uint64_t>(rounds / in_block, 1);
  Costs with, without;
  for (uint64_t i = 0; i < blocks; ++i) {
    without.add_block(IN_MPI(MPI_Allreduce));
    with.add_block(MPI_Allreduce);
  }
  const auto lives = static_cast<long>(blocks * in_block);
  test::check(with.faults <= without.faults + lives / 10,
              std::to_string(lives) + " lives took " + std::to_string(with.faults) +
                  " page faults, without Sluice " + std::to_string(without.faults));
  double mine[] = {quantile(with.times, 0.5), quantile(without.times, 0.5),
                   quantile(with.times, 0.1), quantile(without.times, 0.1)};
  double most[4];
  IN_MPI(MPI_Allreduce)(mine, most, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (test::rank == 0) {
    std::printf(
        "lifetimes: %.1f us with Sluice, %.1f us without: ratio %.2f; undisturbed %.1f and "
        "%.1f: ratio %.2f\n",
        most[0], most[1], most[0] / most[1], most[2], most[3], most[2] / most[3]);
  }
}

void expect_no_more(size_t before, size_t after, size_t allowed, const char* what) {
  test::check(after <= before + allowed,
              std::to_string(before) + " " + what + " became " + std::to_string(after));
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const uint64_t rounds = options.number("rounds", 2000);
  // Warm-up: fills caches and makes what is made only once.
  for (uint64_t i = 0; i < 200; ++i) live(i, MPI_Allreduce);
  const Belongings before = look();
  const size_t names = count_names();
  compare(rounds);
  const Belongings after = look();
  expect_no_more(before.descriptors, after.descriptors, 0, "descriptors");
  expect_no_more(before.sockets, after.sockets, 0, "sockets");
  expect_no_more(before.mappings, after.mappings, 8, "mappings");
  expect_no_more(before.kilobytes, after.kilobytes, 2048, "KB of memory");
  expect_no_more(names, count_names(), 8, "names in /dev/shm");  // other jobs may have some
  return test::finish("lifetimes");
}
