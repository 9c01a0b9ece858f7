// SPDX-License-Identifier: BSD-3-Clause
//
// stress [--calls N] [--most BYTES] [--delays N] [--seconds S] [--seed S]: collectives without
// pause, of random kind, communicator, root and size (up to --most bytes per rank). One in N is
// delayed on a random rank. Every result is checked. Ends early when --seconds have passed.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<uint32_t>;

constexpr uint32_t by_rank = 0x9e3779b1, by_call = 0x85ebca6b, by_index = 0xc2b2ae35;

struct Ranks {
  MPI_Comm comm;
  int rank, size;
};

// One call at a time: the parameters, drawn alike on all ranks, and the buffers of all calls.
class Stress {
 public:
  Stress(uint64_t seed, size_t most_words, size_t delays)
      : common_(seed), most_(most_words), delays_(delays) {
    add(MPI_COMM_WORLD);
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    add(other);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -ranks_[0].rank, &other);
    add(other);
    own_ = test::Random(seed + static_cast<uint64_t>(ranks_[0].rank) + 1);
    const auto size = static_cast<size_t>(ranks_[0].size);
    in_.resize(size * most_ + 1);
    out_.resize(size * most_ + 1);
  }

  void call() {
    ++number_;
    here_ = &ranks_[common_.below(4) == 0 ? 1 + common_.below(2) : 0];
    root_ = static_cast<int>(common_.below(static_cast<size_t>(here_->size)));
    count_ = draw_count();
    const size_t kind = common_.below(std::size(kinds));
    name_ = kinds[kind].name;
    if (own_.chance(delays_)) dawdle();
    (this->*kinds[kind].run)();
  }
  uint32_t calls() const { return number_; }
  bool all_agree_to_stop(bool late) {
    const int mine = late;
    int any = 0;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    return any != 0;
  }

 private:
  struct Kind {
    const char* name;
    void (Stress::*run)();
  };
  static const Kind kinds[15];

  void add(MPI_Comm comm) {
    Ranks ranks{comm, 0, 0};
    MPI_Comm_rank(comm, &ranks.rank);
    MPI_Comm_size(comm, &ranks.size);
    ranks_.push_back(ranks);
  }
  // Log-uniform: 1 to 2 words are as likely as 512 to 1024.
  size_t draw_count() {
    if (common_.chance(16)) return 0;
    const size_t power = common_.below(static_cast<size_t>(64 - __builtin_clzll(most_)));
    return std::min((size_t{1} << power) + common_.below(size_t{1} << power), most_);
  }
  void dawdle() {
    const auto time = static_cast<useconds_t>(own_.below(300));
    if (own_.chance(2)) {
      usleep(time);
      return;
    }
    const auto until = Clock::now() + std::chrono::microseconds(time);
    while (Clock::now() < until) {
    }
  }

  size_t size() const { return static_cast<size_t>(here_->size); }
  int n() const { return static_cast<int>(count_); }
  uint32_t word(int rank, size_t index) const {
    return static_cast<uint32_t>(rank + 1) * by_rank + number_ * by_call +
           static_cast<uint32_t>(index) * by_index;
  }
  uint32_t sum(size_t index) const { return sum(index, here_->size); }
  // Of the lowest ranks.
  uint32_t sum(size_t index, int ranks) const {
    const auto p = static_cast<uint32_t>(ranks);
    return p * (p + 1) / 2 * by_rank + p * (number_ * by_call) +
           p * static_cast<uint32_t>(index) * by_index;
  }
  void fill(Words& words, size_t count) const {
    for (size_t i = 0; i < count; ++i) words[i] = word(here_->rank, i);
    words[count] = 42;  // behind what counts
  }
  // Compares the result; nothing after it may have changed.
  template <typename Expected>
  void expect(const Expected& expected, size_t begin, size_t count) const {
    uint32_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong |= out_[begin + i] ^ expected(i);
    if (wrong != 0) complain();
  }
  void guard(size_t end) { out_[end] = 43; }
  void expect_guard(size_t end) const {
    if (out_[end] != 43) complain();
  }
  void complain() const {
    test::fail(std::string(name_) + " of " + std::to_string(count_) + " words, call " +
               std::to_string(number_) + ", root " + std::to_string(root_) + ": a wrong result");
  }

  void barrier() { MPI_Barrier(here_->comm); }
  void broadcast() {
    if (here_->rank == root_) fill(out_, count_);
    guard(count_);
    MPI_Bcast(out_.data(), n(), MPI_UINT32_T, root_, here_->comm);
    expect([&](size_t i) { return word(root_, i); }, 0, count_);
    expect_guard(count_);
  }
  void reduce() {
    fill(in_, count_);
    guard(count_);
    MPI_Reduce(in_.data(), out_.data(), n(), MPI_UINT32_T, MPI_SUM, root_, here_->comm);
    if (here_->rank == root_) expect([&](size_t i) { return sum(i); }, 0, count_);
    expect_guard(count_);
  }
  void allreduce() {
    const bool in_place = common_.chance(3);
    fill(in_place ? out_ : in_, count_);
    guard(count_);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in_.data(), out_.data(), n(), MPI_UINT32_T, MPI_SUM,
                  here_->comm);
    expect([&](size_t i) { return sum(i); }, 0, count_);
    expect_guard(count_);
  }
  void scan() {
    const bool in_place = common_.chance(3);
    fill(in_place ? out_ : in_, count_);
    guard(count_);
    MPI_Scan(in_place ? MPI_IN_PLACE : in_.data(), out_.data(), n(), MPI_UINT32_T, MPI_SUM,
             here_->comm);
    expect([&](size_t i) { return sum(i, here_->rank + 1); }, 0, count_);
    expect_guard(count_);
  }
  // Leaves rank 0's words alone.
  void exscan() {
    const bool in_place = common_.chance(3);
    fill(out_, count_);
    fill(in_, count_);
    guard(count_);
    MPI_Exscan(in_place ? MPI_IN_PLACE : in_.data(), out_.data(), n(), MPI_UINT32_T, MPI_SUM,
               here_->comm);
    expect([&](size_t i) { return sum(i, std::max(here_->rank, 1)); }, 0, count_);
    expect_guard(count_);
  }
  void allgather() {
    fill(in_, count_);
    guard(size() * count_);
    MPI_Allgather(in_.data(), n(), MPI_UINT32_T, out_.data(), n(), MPI_UINT32_T, here_->comm);
    for (int rank = 0; rank < here_->size; ++rank) {
      expect([&](size_t i) { return word(rank, i); }, static_cast<size_t>(rank) * count_, count_);
    }
    expect_guard(size() * count_);
  }
  // Blocks of count_, fewer for higher ranks.
  void lay_out() {
    counts_.resize(size());
    places_.resize(size());
    for (size_t rank = 0; rank < size(); ++rank) {
      counts_[rank] = static_cast<int>(count_ - count_ * rank / (2 * size()));
    }
    std::exclusive_scan(counts_.begin(), counts_.end(), places_.begin(), 0);
  }
  void allgatherv() {
    lay_out();
    const auto me = static_cast<size_t>(here_->rank);
    fill(in_, static_cast<size_t>(counts_[me]));
    MPI_Allgatherv(in_.data(), counts_[me], MPI_UINT32_T, out_.data(), counts_.data(),
                   places_.data(), MPI_UINT32_T, here_->comm);
    for (int rank = 0; rank < here_->size; ++rank) {
      const auto at = static_cast<size_t>(rank);
      expect([&](size_t i) { return word(rank, i); }, static_cast<size_t>(places_[at]),
             static_cast<size_t>(counts_[at]));
    }
  }
  void gather() {
    const bool is_root = here_->rank == root_, in_place = common_.chance(3) && is_root;
    const size_t own = static_cast<size_t>(root_) * count_;
    fill(in_, count_);
    if (in_place) std::copy_n(in_.begin(), count_, out_.begin() + static_cast<ptrdiff_t>(own));
    guard(is_root ? size() * count_ : 0);
    MPI_Gather(in_place ? MPI_IN_PLACE : in_.data(), n(), MPI_UINT32_T, out_.data(), n(),
               MPI_UINT32_T, root_, here_->comm);
    for (int rank = 0; is_root && rank < here_->size; ++rank) {
      expect([&](size_t i) { return word(rank, i); }, static_cast<size_t>(rank) * count_, count_);
    }
    expect_guard(is_root ? size() * count_ : 0);
  }
  void gatherv() {
    lay_out();
    const auto me = static_cast<size_t>(here_->rank);
    const bool is_root = here_->rank == root_;
    fill(in_, static_cast<size_t>(counts_[me]));
    guard(is_root ? in_.size() - 1 : 0);
    MPI_Gatherv(in_.data(), counts_[me], MPI_UINT32_T, out_.data(),
                is_root ? counts_.data() : nullptr, is_root ? places_.data() : nullptr,
                MPI_UINT32_T, root_, here_->comm);
    for (int rank = 0; is_root && rank < here_->size; ++rank) {
      const auto at = static_cast<size_t>(rank);
      expect([&](size_t i) { return word(rank, i); }, static_cast<size_t>(places_[at]),
             static_cast<size_t>(counts_[at]));
    }
    expect_guard(is_root ? in_.size() - 1 : 0);
  }
  // Leaves the root's words alone in place.
  void scatter() {
    const bool is_root = here_->rank == root_, in_place = common_.chance(3) && is_root;
    const size_t before = static_cast<size_t>(here_->rank) * count_;
    const size_t received = in_place ? 0 : count_;
    if (is_root) fill(in_, size() * count_);
    guard(received);
    MPI_Scatter(is_root ? in_.data() : nullptr, n(), MPI_UINT32_T,
                in_place ? MPI_IN_PLACE : out_.data(), n(), MPI_UINT32_T, root_, here_->comm);
    expect([&](size_t i) { return word(root_, before + i); }, 0, received);
    expect_guard(received);
  }
  void scatterv() {
    lay_out();
    const auto me = static_cast<size_t>(here_->rank);
    const bool is_root = here_->rank == root_;
    const auto before = static_cast<size_t>(places_[me]), own = static_cast<size_t>(counts_[me]);
    if (is_root) fill(in_, static_cast<size_t>(places_.back() + counts_.back()));
    guard(own);
    MPI_Scatterv(in_.data(), is_root ? counts_.data() : nullptr, is_root ? places_.data() : nullptr,
                 MPI_UINT32_T, out_.data(), counts_[me], MPI_UINT32_T, root_, here_->comm);
    expect([&](size_t i) { return word(root_, before + i); }, 0, own);
    expect_guard(own);
  }
  void alltoall() {
    fill(in_, size() * count_);
    guard(size() * count_);
    MPI_Alltoall(in_.data(), n(), MPI_UINT32_T, out_.data(), n(), MPI_UINT32_T, here_->comm);
    const size_t before = static_cast<size_t>(here_->rank) * count_;
    for (int rank = 0; rank < here_->size; ++rank) {
      expect([&](size_t i) { return word(rank, before + i); }, static_cast<size_t>(rank) * count_,
             count_);
    }
    expect_guard(size() * count_);
  }
  // Each rank receives from all as much as its own block in the layout has.
  void alltoallv() {
    lay_out();
    const auto me = static_cast<size_t>(here_->rank);
    Words& in = in_;
    fill(in, size() * count_);
    const std::vector<int> from(size(), counts_[me]);
    std::vector<int> at(size());
    std::exclusive_scan(from.begin(), from.end(), at.begin(), 0);
    MPI_Alltoallv(in.data(), counts_.data(), places_.data(), MPI_UINT32_T, out_.data(), from.data(),
                  at.data(), MPI_UINT32_T, here_->comm);
    const auto before = static_cast<size_t>(places_[me]);
    for (int rank = 0; rank < here_->size; ++rank) {
      expect([&](size_t i) { return word(rank, before + i); },
             static_cast<size_t>(at[static_cast<size_t>(rank)]), static_cast<size_t>(from[0]));
    }
  }
  void reduce_scatter() {
    lay_out();
    const auto me = static_cast<size_t>(here_->rank);
    fill(in_, static_cast<size_t>(places_.back() + counts_.back()));
    MPI_Reduce_scatter(in_.data(), out_.data(), counts_.data(), MPI_UINT32_T, MPI_SUM, here_->comm);
    const auto before = static_cast<size_t>(places_[me]);
    expect([&](size_t i) { return sum(before + i); }, 0, static_cast<size_t>(counts_[me]));
  }

  test::Random common_, own_{0};
  const size_t most_, delays_;
  std::vector<Ranks> ranks_;
  Words in_, out_;
  std::vector<int> counts_, places_;
  uint32_t number_ = 0;
  const Ranks* here_ = nullptr;
  int root_ = 0;
  size_t count_ = 0;
  const char* name_ = "";
};

const Stress::Kind Stress::kinds[] = {
    {"barrier", &Stress::barrier},
    {"bcast", &Stress::broadcast},
    {"reduce", &Stress::reduce},
    {"allreduce", &Stress::allreduce},
    {"allgather", &Stress::allgather},
    {"allgatherv", &Stress::allgatherv},
    {"alltoall", &Stress::alltoall},
    {"alltoallv", &Stress::alltoallv},
    {"reduce_scatter", &Stress::reduce_scatter},
    {"scan", &Stress::scan},
    {"exscan", &Stress::exscan},
    {"gather", &Stress::gather},
    {"gatherv", &Stress::gatherv},
    {"scatter", &Stress::scatter},
    {"scatterv", &Stress::scatterv},
};

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const uint64_t calls = options.number("calls", 100000), seconds = options.number("seconds", 3600);
  const size_t most = std::max<size_t>(options.number("most", 64) / sizeof(uint32_t), 1);
  Stress stress(test::agree_on_seed(options), most, options.number("delays", 1000));
  const auto began = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - began).count(); };
  while (stress.calls() < calls) {
    stress.call();
    if (stress.calls() % 4096 == 0 &&
        stress.all_agree_to_stop(elapsed() > static_cast<double>(seconds))) {
      break;
    }
  }
  if (test::rank == 0) std::printf("%u calls in %.1f s\n", stress.calls(), elapsed());
  test::check(stress.calls() > 0, "calls were made");
  return test::finish("stress");
}
