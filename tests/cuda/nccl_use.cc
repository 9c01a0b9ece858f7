// SPDX-License-Identifier: BSD-3-Clause
//
// nccl_use --what host|hints|failure|statistics [--driver PATH] [--calls N]: when NCCL is used, and
// what a program sees of it.
//
// host: large calls on host memory, over TCP. Prints which of them had a vote, by the bytes that
// this rank received: all calls are equal, so those that brought more had one. Prints which of the
// libraries of CUDA are mapped, too.
// hints: communicators with the hint sluice_nccl, as SLUICE_NCCL (off or on) has it not.
// failure: NCCL fails while it starts.
// statistics: five broadcasts that NCCL carries.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cuda/kinds.h"
#include "tests/cuda/nccl_calls.h"
#include "tests/cuda/received.h"

using test::algorithm_of;
using test::Kind;
using test::KindMemory;
using test::received;

namespace {

using test::rank, test::size;

void sum(MPI_Comm comm, void* data, int count) {
  MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_INT, MPI_SUM, comm);
}

// The calls that have a vote, and the bytes that all have brought.
std::string votes(int calls) {
  std::vector<int> data(4096, 0);
  std::vector<uint64_t> brought;
  MPI_Barrier(MPI_COMM_WORLD);  // which never has a vote: the set-up
  uint64_t before = received();
  const uint64_t first = before;
  for (int call = 0; call < calls; ++call) {
    sum(MPI_COMM_WORLD, data.data(), static_cast<int>(data.size()));
    const uint64_t now = received();
    brought.push_back(now - before);
    before = now;
  }
  const uint64_t least = *std::ranges::min_element(brought);
  test::check(least >= data.size() * sizeof(int) / static_cast<size_t>(size), "sums over TCP");
  std::string text;
  for (size_t call = 0; call < brought.size(); ++call) {
    if (brought[call] > least) text += " " + std::to_string(call + 1);
  }
  return text.empty() ? " none" : text + ", of " + std::to_string(before - first) + " bytes in all";
}

std::string mapped() {
  std::ifstream maps("/proc/self/maps");
  const std::string all((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  std::string text;
  for (const char* name : {"libcuda.so", "libsluice-cuda.so", "libnccl.so"}) {
    if (all.find(name) != std::string::npos) text += std::string(" ") + name;
  }
  return text.empty() ? " none" : text;
}

void host(int calls) {
  const std::string voted = votes(calls);
  std::printf("rank %d: votes:%s, mapped:%s\n", rank, voted.c_str(), mapped().c_str());
}

MPI_Comm hinted(const char* name, const char* value) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  if (*value) MPI_Info_set(info, "sluice_nccl", value);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &made);
  MPI_Info_free(&info);
  MPI_Comm_set_name(made, name);
  return made;
}

// As many calls as NCCL needs many times over.
void expect_no_nccl(MPI_Comm comm, const std::string& what) {
  const int count = 50000;
  const std::vector<int> ones(count, 1), sums(count, size);
  KindMemory data(Kind::device, count * sizeof(int));
  for (int call = 0; call < 40; ++call) {
    data.put(ones);
    sum(comm, data.data(), count);
    test::check(data.get<int>(count) == sums, what);
    test::check(algorithm_of(comm) != "nccl", what + ": it was carried by NCCL");
  }
}

void expect_use(MPI_Comm comm, bool used, const std::string& what) {
  if (used) {
    test::start_nccl(comm);
  } else {
    expect_no_nccl(comm, what);
  }
}

// is_on: SLUICE_NCCL.
void hints(bool is_on) {
  const char* const other = is_on ? "off" : "on";
  MPI_Comm comm = hinted("plain", "");
  expect_use(comm, is_on, "without a hint");
  MPI_Comm_free(&comm);
  comm = hinted("hinted", other);
  expect_use(comm, !is_on, std::string("by the hint ") + other);
  // A hint that is given later takes effect at the next call.
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "sluice_nccl", is_on ? "on" : "off");
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
  expect_use(comm, is_on, "by the later hint");
  MPI_Comm_free(&comm);
  comm = hinted("at odds", rank == 0 ? other : "auto");
  expect_use(comm, is_on, "by hints that differ");
  MPI_Comm_free(&comm);
  comm = hinted("wrong", "perhaps");
  expect_use(comm, is_on, "by a hint that is not accepted");
  MPI_Comm_free(&comm);
}

void statistics() {
  const size_t count = 12500;
  MPI_Comm comm = hinted("counted", "");
  test::start_nccl(comm);
  KindMemory data(Kind::device, count * sizeof(int));
  for (int call = 0; call < 5; ++call) {
    data.put(std::vector<int>(count, rank + call));
    MPI_Bcast(data.data(), static_cast<int>(count), MPI_INT, 1, comm);
    test::check(algorithm_of(comm) == "nccl", "a broadcast by " + algorithm_of(comm));
    test::check(data.get<int>(count) == std::vector<int>(count, 1 + call), "broadcast");
  }
  std::printf("rank %d: mapped:%s\n", rank, mapped().c_str());
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const std::string driver = options.text("driver", ""), what = options.text("what", "");
  if (!driver.empty()) test::load_driver(driver, rank);
  if (what == "host") host(static_cast<int>(options.number("calls", 100)));
  if (what == "hints") {
    const char* const setting = std::getenv("SLUICE_NCCL");
    hints(setting && std::string(setting) == "on");
  }
  if (what == "failure") expect_no_nccl(MPI_COMM_WORLD, "after a failure");
  if (what == "statistics") statistics();
  return test::finish("nccl_use");
}
