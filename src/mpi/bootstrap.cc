// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/bootstrap.h"

#include <algorithm>
#include <utility>

#include "src/mpi/thread_state.h"

namespace sluice {
namespace {

// While it exists, MPI returns errors on the communicator and does not call the program's handler:
// if a rank without Sluice takes part, its message may have another length. (If other threads may
// be in MPI the handler stays, since they would miss it.)
class HandlerPutAside {
 public:
  explicit HandlerPutAside(MPI_Comm comm) : comm_(comm) {
    if (threads_call_mpi.load(std::memory_order_relaxed)) return;
    is_put_aside_ = !real().Comm_get_errhandler(comm, &handler_);
    if (is_put_aside_) real().Comm_set_errhandler(comm, real().errors_return);
  }
  ~HandlerPutAside() {
    if (!is_put_aside_) return;
    real().Comm_set_errhandler(comm_, handler_);
    real().Errhandler_free(&handler_);
  }
  HandlerPutAside(const HandlerPutAside&) = delete;
  HandlerPutAside& operator=(const HandlerPutAside&) = delete;

 private:
  const MPI_Comm comm_;
  MPI_Errhandler handler_{};
  bool is_put_aside_ = false;
};

}  // namespace

MpiBootstrap::MpiBootstrap(MPI_Comm comm, Rank rank, Rank size, std::string name,
                           const char* function, double timeout)
    : comm_(comm),
      rank_(rank),
      size_(size),
      name_(std::move(name)),
      late_(function, name_, size, timeout) {}

Status MpiBootstrap::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  has_met_ = true;
  if (size_ == 1) {
    std::ranges::copy(mine, all.begin());
    return {};
  }
  const int bytes = static_cast<int>(mine.size());
  const HandlerPutAside errors(comm_);
  const LateRanks::Wait wait(late_);
  const int result =
      real().Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, comm_);
  return result == MPI_SUCCESS ? Status() : failed_;
}

// Hashes the size and the world ranks of up to six members. (To translate all ranks would take
// quadratic time in Open MPI.)
uint64_t MpiBootstrap::group_fingerprint() const {
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

}  // namespace sluice
