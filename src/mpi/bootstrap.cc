// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/bootstrap.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <thread>

#include "src/base/log.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr auto first_report = 5s;  // each later one comes after twice as long
constexpr auto spin = 20us;        // then yield; MPI may know, and yield, earlier
constexpr auto yields = 2ms;       // then sleep: the rank that is late may need this processor
constexpr auto nap = 100us;

}  // namespace

// The buffers are MPI's until it is done.
struct MpiBootstrap::Gather {
  std::vector<std::byte> mine, all;
  MPI_Request request;
};

MpiBootstrap::MpiBootstrap(MPI_Comm comm, Rank rank, Rank size, std::string name,
                           const char* function, double timeout)
    : comm_(comm),
      rank_(rank),
      size_(size),
      name_(std::move(name)),
      function_(function),
      timeout_(timeout) {}

// nullptr if there is no memory for it.
MpiBootstrap::Gather* MpiBootstrap::begin(std::span<const std::byte> mine) try {
  auto gather = std::make_unique<Gather>();
  gather->mine.assign(mine.begin(), mine.end());
  gather->all.resize(mine.size() * size_);
  const int bytes = static_cast<int>(mine.size());
  const bool begun = real().Iallgather(gather->mine.data(), bytes, MPI_BYTE, gather->all.data(),
                                       bytes, MPI_BYTE, comm_, &gather->request) == MPI_SUCCESS;
  return begun ? gather.release() : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

Status MpiBootstrap::allgather(std::span<const std::byte> mine, std::span<std::byte> all,
                               Limit limit) {
  if (size_ == 1) {
    std::ranges::copy(mine, all.begin());
    return {};
  }
  // MPI can't take the request back, and may write there until it is done.
  Gather* const under_way = begin(mine);
  if (!under_way) return no_memory_;
  if (Status status = wait(&under_way->request, limit); !status.ok()) return status;
  const std::unique_ptr<Gather> gather(under_way);
  std::ranges::copy(gather->all, all.begin());
  return {};
}

bool MpiBootstrap::leave(std::span<const std::byte> mine) { return begin(mine) != nullptr; }

// Where some of its ranks are in the world. (All would take quadratic time in Open MPI.)
uint64_t MpiBootstrap::mark() const {
  const int last = static_cast<int>(size_) - 1, self = static_cast<int>(rank_);
  const int samples[] = {0, std::min(1, last), last / 2, last, self, self < last ? self + 1 : 0};
  int there[std::size(samples)] = {};
  MPI_Group here, world;
  real().Comm_group(comm_, &here);
  real().Comm_group(real().comm_world, &world);
  real().Group_translate_ranks(here, std::size(samples), samples, world, there);
  real().Group_free(&here);
  real().Group_free(&world);
  uint64_t hash = size_;
  for (const int rank : there) hash = hash * 0x100000001b3 ^ static_cast<uint32_t>(rank);
  return hash;
}

Status MpiBootstrap::wait(MPI_Request* request, Limit limit) try {
  const auto began = Clock::now();
  const Deadline deadline = Deadline::after(limit == Limit::none ? 0 : timeout_);
  Clock::duration report_after = first_report;
  for (int done = 0;;) {
    if (real().Test(request, &done, MPI_STATUS_IGNORE)) {
      return {Code::internal, "MPI_Test failed"};
    }
    if (done) return {};
    const auto waited = Clock::now() - began;
    if (deadline.passed()) return {Code::timeout, describe(waited) + " (SLUICE_SETUP_TIMEOUT)"};
    if (waited > report_after) {
      report(waited);
      report_after *= 2;
    }
    if (waited < spin) continue;
    if (waited < yields) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(nap);
    }
  }
} catch (const std::bad_alloc&) {  // of the error's words
  return gave_up_;
}

void MpiBootstrap::report(Clock::duration waited) const try {
  log(Level::warning, "%s: setting up %s: %s; still waiting", function_, name_.c_str(),
      describe(waited).c_str());
} catch (const std::bad_alloc&) {  // the next time, perhaps
}

// MPI does not tell who is missing.
std::string MpiBootstrap::describe(Clock::duration waited) const {
  return "not all of its " + std::to_string(size_) + " ranks have answered within " +
         std::to_string(std::chrono::round<std::chrono::seconds>(waited).count()) +
         " s: one has not called a collective on it yet, or runs without Sluice because "
         "the preload did not reach it (mpirun -x LD_PRELOAD reaches all)";
}

}  // namespace sluice
