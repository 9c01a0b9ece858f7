// SPDX-License-Identifier: BSD-3-Clause
//
// protected: receive buffers that are write-protected at the start of a call, as incremental
// checkpointers and dirty trackers do. A handler of SIGSEGV notes the page as dirty and makes it
// writable. All collectives must be correct, every page that receives data must be noted, and no
// other page.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

constexpr unsigned watchdog = 120;
constexpr size_t page = 4096, most_bytes = size_t{1} << 20;
constexpr int rounds = 2;

using test::rank;

// Memory whose pages the handler unprotects and counts.
class Tracked {
 public:
  static constexpr size_t pages = 2 * most_bytes / page + 3;

  static void map() {
    base = static_cast<char*>(
        mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base == MAP_FAILED) test::fail("no pages");
    struct sigaction action = {};
    action.sa_sigaction = unprotect;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
  }
  // A buffer behind the first page. shift: bytes from the page's start.
  static int* buffer(size_t shift) { return reinterpret_cast<int*>(base + page + shift); }
  static void protect() {
    std::fill(std::begin(dirty), std::end(dirty), 0);
    if (mprotect(base, pages * page, PROT_READ) != 0) test::fail("mprotect");
  }
  // Whether exactly the pages of these bytes became dirty.
  static bool has_noted(const void* data, size_t bytes) {
    const size_t begin = static_cast<size_t>(static_cast<const char*>(data) - base);
    const size_t first = begin / page, end = bytes == 0 ? first : (begin + bytes - 1) / page + 1;
    for (size_t i = 0; i < pages; ++i) {
      if ((dirty[i] != 0) != (i >= first && i < end)) return false;
    }
    return true;
  }
  static bool is_dirty(size_t i) { return dirty[i] != 0; }

 private:
  static void unprotect(int, siginfo_t* info, void*) {
    const size_t at = static_cast<size_t>(static_cast<char*>(info->si_addr) - base);
    if (at >= pages * page || dirty[at / page] != 0) _exit(3);
    dirty[at / page] = 1;
    mprotect(base + at / page * page, page, PROT_READ | PROT_WRITE);
  }

  static inline char* base = nullptr;
  static inline volatile char dirty[pages] = {};
};

int value(int from, size_t i, int round) { return static_cast<int>(i % 1000) * (from + 1) + round; }
int sum(size_t i, int round, int ranks = test::size) {
  int total = 0;
  for (int from = 0; from < ranks; ++from) total += value(from, i, round);
  return total;
}

// One call with protected receive buffers.
class Trial {
 public:
  Trial(size_t bytes, size_t shift, int round)
      : count_(bytes / sizeof(int)), round_(round), out_(Tracked::buffer(shift)), in_(count_) {
    for (size_t i = 0; i < count_; ++i) in_[i] = value(rank, i, round);
  }

  void broadcast(int root) {
    if (rank == root) std::copy(in_.begin(), in_.end(), out_);
    Tracked::protect();
    MPI_Bcast(out_, count(), MPI_INT, root, MPI_COMM_WORLD);
    check("broadcast", rank == root ? 0 : count_,
          [&](size_t i) { return out_[i] == value(root, i, round_); });
  }
  void allreduce(bool in_place) {
    if (in_place) std::copy(in_.begin(), in_.end(), out_);
    Tracked::protect();
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in_.data(), out_, count(), MPI_INT, MPI_SUM,
                  MPI_COMM_WORLD);
    check(in_place ? "allreduce in place" : "allreduce", count_,
          [&](size_t i) { return out_[i] == sum(i, round_); });
  }
  void reduce(int root) {
    Tracked::protect();
    MPI_Reduce(in_.data(), out_, count(), MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    check("reduce", rank == root ? count_ : 0,
          [&](size_t i) { return rank != root || out_[i] == sum(i, round_); });
  }
  void scan() {
    Tracked::protect();
    MPI_Scan(in_.data(), out_, count(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check("scan", count_, [&](size_t i) { return out_[i] == sum(i, round_, rank + 1); });
  }
  void exscan() {
    Tracked::protect();
    MPI_Exscan(in_.data(), out_, count(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check("exscan", rank == 0 ? 0 : count_,
          [&](size_t i) { return rank == 0 || out_[i] == sum(i, round_, rank); });
  }
  void reduce_scatter() {
    const size_t share = count_ / static_cast<size_t>(test::size), before = share_begin();
    Tracked::protect();
    MPI_Reduce_scatter_block(in_.data(), out_, static_cast<int>(share), MPI_INT, MPI_SUM,
                             MPI_COMM_WORLD);
    check("reduce_scatter", share,
          [&](size_t i) { return i >= share || out_[i] == sum(before + i, round_); });
  }
  // Each rank gets a share of every rank's data: the one for it, or the first.
  void exchange(bool all_to_all) {
    const size_t share = count_ / static_cast<size_t>(test::size);
    const size_t before = all_to_all ? share_begin() : 0;
    const int n = static_cast<int>(share);
    Tracked::protect();
    all_to_all ? MPI_Alltoall(in_.data(), n, MPI_INT, out_, n, MPI_INT, MPI_COMM_WORLD)
               : MPI_Allgather(in_.data(), n, MPI_INT, out_, n, MPI_INT, MPI_COMM_WORLD);
    check(all_to_all ? "alltoall" : "allgather", share * static_cast<size_t>(test::size),
          [&](size_t i) {
            const size_t from = i / share;
            return from >= static_cast<size_t>(test::size) ||
                   out_[i] == value(static_cast<int>(from), before + i % share, round_);
          });
  }
  // Only the root receives. Others give no buffer for that, or one that no call may touch.
  void gather(int root) {
    const size_t share = count_ / static_cast<size_t>(test::size);
    const int n = static_cast<int>(share);
    Tracked::protect();
    MPI_Gather(in_.data(), n, MPI_INT, rank % 2 == 0 || rank == root ? out_ : nullptr, n, MPI_INT,
               root, MPI_COMM_WORLD);
    check("gather", rank == root ? share * static_cast<size_t>(test::size) : 0, [&](size_t i) {
      const size_t from = i / share;
      return rank != root || from >= static_cast<size_t>(test::size) ||
             out_[i] == value(static_cast<int>(from), i % share, round_);
    });
  }
  // The root receives nothing in place.
  void scatter(int root, bool in_place) {
    const size_t share = count_ / static_cast<size_t>(test::size), before = share_begin();
    const int n = static_cast<int>(share);
    const bool receives = rank != root || !in_place;
    Tracked::protect();
    MPI_Scatter(in_.data(), n, MPI_INT, receives ? out_ : MPI_IN_PLACE, n, MPI_INT, root,
                MPI_COMM_WORLD);
    check(in_place ? "scatter in place" : "scatter", receives ? share : 0, [&](size_t i) {
      return i >= share || !receives || out_[i] == value(root, before + i, round_);
    });
  }

 private:
  int count() const { return static_cast<int>(count_); }
  size_t share_begin() const {
    return count_ / static_cast<size_t>(test::size) * static_cast<size_t>(rank);
  }
  template <typename IsRight>
  void check(const std::string& what, size_t received, const IsRight& is_right) {
    const std::string call = what + " of " + std::to_string(count_) + " integers";
    for (size_t i = 0; i < count_; ++i) {
      if (!is_right(i)) test::fail(call + ": wrong at " + std::to_string(i));
    }
    test::check(Tracked::has_noted(out_, received * sizeof(int)), call + ": other pages written");
  }

  const size_t count_;
  const int round_;
  int* const out_;
  std::vector<int> in_;
};

void try_all(size_t bytes, size_t shift) {
  for (int round = 0; round < rounds; ++round) {
    Trial trial(bytes, shift, round);
    for (int root = 0; root < test::size; ++root) {
      trial.broadcast(root);
      trial.reduce(root);
      trial.gather(root);
      trial.scatter(root, false);
      trial.scatter(root, true);
    }
    trial.allreduce(false);
    trial.allreduce(true);
    trial.scan();
    trial.exscan();
    trial.reduce_scatter();
    trial.exchange(false);
    trial.exchange(true);
  }
}

// Every second page is a gap of the datatype.
void try_gaps() {
  constexpr int blocks = most_bytes / page, length = page / sizeof(int);
  MPI_Datatype type;
  MPI_Type_vector(blocks, length, 2 * length, MPI_INT, &type);
  MPI_Type_commit(&type);
  int* const data = Tracked::buffer(0);
  mprotect(data, 2 * most_bytes, PROT_READ | PROT_WRITE);
  std::fill(data, data + 2 * most_bytes / sizeof(int), rank);
  Tracked::protect();
  MPI_Bcast(data, 1, type, 0, MPI_COMM_WORLD);
  for (size_t i = 0; i < 2 * size_t{blocks}; ++i) {
    const bool is_gap = i % 2 != 0;
    test::check(data[i * length] == (is_gap ? rank : 0), "a page of a type with gaps");
    test::check(Tracked::is_dirty(1 + i) == (rank != 0 && !is_gap), "gaps stay untouched");
  }
  MPI_Type_free(&type);
}

}  // namespace

int main(int argc, char** argv) {
  alarm(watchdog);
  test::start(argc, argv);
  if (test::size < 2) test::fail("needs two ranks");  // one receives nothing in place
  Tracked::map();
  // Equal offsets in the page, and different ones: copies take different ways.
  for (const size_t shift : {size_t{0}, 16 * static_cast<size_t>(rank), size_t{4000}}) {
    for (size_t bytes = page; bytes <= most_bytes; bytes *= 4) try_all(bytes, shift);
  }
  try_gaps();
  return test::finish("protected");
}
