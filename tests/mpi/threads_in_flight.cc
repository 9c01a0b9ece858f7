// SPDX-License-Identifier: BSD-3-Clause
//
// threads_in_flight [--seed S] [--rounds N]: MPI_THREAD_MULTIPLE with non-blocking collectives of
// several threads at once. Two threads start calls, each on communicators of its own, some of which
// it frees at once, and complete them, with messages among them. One thread starts calls that
// another one completes. One makes blocking collectives. All complete requests by all of MPI's
// functions for that, in random order. Sluice must carry each call that it can.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/completion.h"
#include "tests/mpi/harness.h"

namespace {

using test::rank, test::size;

constexpr size_t most_at_once = 32;
int rounds = 40;
std::atomic<unsigned long> carried{0}, not_carried{0};

// (Only the main thread may call test::check.)
void expect(bool holds, const std::string& what) {
  if (!holds) test::fail(what);
}

// An operation of the program's: the sum.
void add(void* from, void* to, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(to)[i] += static_cast<int*>(from)[i];
}
MPI_Op own_sum;

enum class Kind : uint8_t { allreduce, own_allreduce, broadcast, allgather, alltoall, barrier };

bool is_carried_by_sluice(MPI_Comm comm) {
  using Function = const char*(MPI_Comm);
  static auto* const last =
      reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, "sluice_last_algorithm"));
  return last && last(comm) != std::string("mpi");
}

// A call with its data. Drawn alike on all ranks.
class InFlight {
 public:
  InFlight(test::Random& shared, int number)
      : kind_(static_cast<Kind>(shared.below(6))),
        number_(number),
        root_(static_cast<int>(shared.below(static_cast<size_t>(size)))),
        count_(
            static_cast<int>(shared.chance(3) ? 1 + shared.below(20000) : 1 + shared.below(16))) {}

  // has_team: the communicator has had a blocking call.
  void start(MPI_Comm comm, bool has_team);
  void check() const;

  MPI_Request request = MPI_REQUEST_NULL;

 private:
  size_t length() const { return static_cast<size_t>(count_); }
  int value(int of) const { return number_ * 100 + of; }
  int sum() const { return size * number_ * 100 + size * (size - 1) / 2; }
  void expect_all(size_t first, int value) const {
    const auto begin = to_.begin() + static_cast<ptrdiff_t>(first);
    expect(std::all_of(begin, begin + count_, [value](int i) { return i == value; }),
           "a wrong result of a call of kind " + std::to_string(static_cast<int>(kind_)));
  }

  const Kind kind_;
  const int number_, root_, count_;
  std::vector<int> from_, to_;
};

void InFlight::start(MPI_Comm comm, bool has_team) {
  const bool is_wide = kind_ == Kind::allgather || kind_ == Kind::alltoall;
  const size_t all = length() * static_cast<size_t>(is_wide ? size : 1);
  from_.assign(all, value(rank));
  to_.assign(all, kind_ == Kind::broadcast && rank == root_ ? value(root_) : -1);
  const int n = count_;
  switch (kind_) {
    case Kind::allreduce:
    case Kind::own_allreduce:
      MPI_Iallreduce(from_.data(), to_.data(), n, MPI_INT,
                     kind_ == Kind::allreduce ? MPI_SUM : own_sum, comm, &request);
      break;
    case Kind::broadcast:
      MPI_Ibcast(to_.data(), n, MPI_INT, root_, comm, &request);
      break;
    case Kind::allgather:
      MPI_Iallgather(from_.data(), n, MPI_INT, to_.data(), n, MPI_INT, comm, &request);
      break;
    case Kind::alltoall:
      MPI_Ialltoall(from_.data(), n, MPI_INT, to_.data(), n, MPI_INT, comm, &request);
      break;
    case Kind::barrier:
      MPI_Ibarrier(comm, &request);
      break;
  }
  static const bool has_hook = dlsym(RTLD_DEFAULT, "opal_progress_register");
  const bool can = has_team && (has_hook || kind_ != Kind::own_allreduce);
  const bool is = is_carried_by_sluice(comm);
  expect(is == (can && test::sluice_in_process()), "another than expected does a call");
  ++(is ? carried : not_carried);
}

void InFlight::check() const {
  switch (kind_) {
    case Kind::allreduce:
    case Kind::own_allreduce:
      return expect_all(0, sum());
    case Kind::broadcast:
      return expect_all(0, value(root_));
    case Kind::allgather:
    case Kind::alltoall:
      for (int peer = 0; peer < size; ++peer)
        expect_all(length() * static_cast<size_t>(peer), value(peer));
      return;
    case Kind::barrier:
      return;
  }
}

// A message to the next rank and one from the previous rank.
struct Messages {
  explicit Messages(MPI_Comm comm, int length)
      : from(static_cast<size_t>(length), rank), to(from.size(), -1) {
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Irecv(to.data(), length, MPI_INT, previous, 1, comm, &requests[0]);
    MPI_Isend(from.data(), length, MPI_INT, next, 1, comm, &requests[1]);
  }
  void check() const {
    const int previous = (rank + size - 1) % size;
    expect(to.front() == previous && to.back() == previous, "a wrong message");
  }

  std::vector<int> from, to;
  MPI_Request requests[2];
};

using Calls = std::vector<std::unique_ptr<InFlight>>;

// Completes some of the requests, or all.
void complete(const std::vector<MPI_Request*>& requests, test::Random& own, bool all) {
  const auto is_pending = [](const MPI_Request* each) { return *each != MPI_REQUEST_NULL; };
  do {
    if (!std::ranges::any_of(requests, is_pending)) return;
    test::complete_some(requests, own);
  } while (all);
}

MPI_Comm make_comm(bool has_call) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (has_call) MPI_Barrier(comm);
  return comm;
}

// One thread's: it starts calls on a communicator and completes them.
void work(MPI_Comm lasting, uint64_t seed) {
  test::Random shared(seed), own(seed + static_cast<uint64_t>(rank) + 1);
  for (int round = 0; round < rounds; ++round) {
    const bool is_new = shared.chance(4), has_team = !is_new || !shared.chance(4);
    MPI_Comm comm = lasting;
    if (is_new) {
      MPI_Comm_dup(lasting, &comm);
      if (has_team) MPI_Barrier(comm);
    }
    Messages messages(lasting, round % 2 ? 2 : 20000);
    std::vector<MPI_Request*> requests{&messages.requests[0], &messages.requests[1]};
    Calls calls;
    for (size_t i = 1 + shared.below(most_at_once); i > 0; --i) {
      calls.push_back(std::make_unique<InFlight>(shared, round));
      calls.back()->start(comm, has_team);
      requests.push_back(&calls.back()->request);
      if (own.chance(4)) complete(requests, own, false);
    }
    // (Open MPI 4.1.4 crashes if calls of its own are in flight there.)
    if (is_new && has_team) MPI_Comm_free(&comm);
    complete(requests, own, true);
    messages.check();
    for (const auto& call : calls) call->check();
    if (is_new && !has_team) MPI_Comm_free(&comm);
  }
}

// Calls on their way from the thread that starts them to the one that completes them.
class Handover {
 public:
  void give(std::unique_ptr<InFlight> call) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_.size() < most_at_once; });
    calls_.push_back(std::move(call));
    changed_.notify_all();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }
  // What is there, once there is something; nothing: all is over. may_wait: or at once.
  Calls take(bool may_wait) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !may_wait || has_ended_ || !calls_.empty(); });
    changed_.notify_all();
    return std::move(calls_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Calls calls_;
  bool has_ended_ = false;
};

void start_for_other(MPI_Comm comm, uint64_t seed, Handover& handover) {
  test::Random shared(seed);
  for (int number = 0; number < rounds * 16; ++number) {
    auto call = std::make_unique<InFlight>(shared, number);
    call->start(comm, true);
    handover.give(std::move(call));
  }
  handover.end();
}

void complete_for_other(uint64_t seed, Handover& handover) {
  test::Random own(seed + static_cast<uint64_t>(rank) + 1);
  Calls calls;
  for (;;) {
    Calls more = handover.take(calls.empty());
    if (calls.empty() && more.empty()) return;
    std::ranges::move(more, std::back_inserter(calls));
    std::vector<MPI_Request*> requests;
    for (const auto& call : calls) requests.push_back(&call->request);
    complete(requests, own, false);
    std::erase_if(calls, [](const std::unique_ptr<InFlight>& call) {
      const bool is_over = call->request == MPI_REQUEST_NULL;
      if (is_over) call->check();
      return is_over;
    });
  }
}

void block(MPI_Comm comm) {
  for (int number = 0; number < rounds * 8; ++number) {
    const int count = number % 4 ? 1 + number % 7 : 30000, root = number % size;
    std::vector<int> from(static_cast<size_t>(count), number + rank), to(from.size(), -1);
    MPI_Allreduce(from.data(), to.data(), count, MPI_INT, MPI_SUM, comm);
    const int sum = size * number + size * (size - 1) / 2;
    expect(to.front() == sum && to.back() == sum, "a wrong result of MPI_Allreduce");
    MPI_Bcast(from.data(), count, MPI_INT, root, comm);
    expect(from.front() == number + root && from.back() == number + root,
           "a wrong result of MPI_Bcast");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int level = test::start(argc, argv, MPI_THREAD_MULTIPLE);
  const test::Options options(argc, argv);
  if (level < MPI_THREAD_MULTIPLE) {
    std::puts("this MPI has no such threads");
    MPI_Finalize();
    return 77;
  }
  rounds = static_cast<int>(options.number("rounds", 40));
  alarm(280);
  const uint64_t seed = test::agree_on_seed(options);
  MPI_Op_create(add, 1, &own_sum);
  std::vector<MPI_Comm> comms(4);
  std::ranges::generate(comms, [] { return make_comm(true); });
  Handover handover;
  std::vector<std::thread> running;
  running.emplace_back([&] { work(comms[0], seed); });
  running.emplace_back([&] { work(comms[1], seed + 1000); });
  running.emplace_back([&] { start_for_other(comms[2], seed + 2000, handover); });
  running.emplace_back([&] { complete_for_other(seed + 3000, handover); });
  running.emplace_back([&] { block(comms[3]); });
  for (std::thread& thread : running) thread.join();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Op_free(&own_sum);
  std::printf("rank %d: %lu calls in flight by Sluice, %lu by MPI\n", rank, carried.load(),
              not_carried.load());
  test::check(carried > 0 || !test::sluice_in_process(), "Sluice carries calls");
  return test::finish("threads_in_flight");
}
