// SPDX-License-Identifier: BSD-3-Clause
//
// Copies that come behind others of the device, which take long or do not end.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "tests/cuda/manners.h"

namespace {

volatile std::sig_atomic_t may_go_on = 0;

}  // namespace

// Rank 1's copies wait until rank 0 has a message of MPI's, for which rank 1's MPI must progress.
void behind_a_message() {
  constexpr size_t count = size_t{1} << 20;
  KindMemory from(Kind::device, 800), to(Kind::device, 800);
  from.put(ones(100));
  std::vector<double> message(count, rank);
  const int own = static_cast<int>(getpid());
  std::vector<int> processes(static_cast<size_t>(size));
  std::signal(SIGUSR1, [](int) { may_go_on = 1; });
  MPI_Allgather(&own, 1, MPI_INT, processes.data(), 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Request request = MPI_REQUEST_NULL;
  std::thread later;
  if (rank == 1) {
    MPI_Isend(message.data(), static_cast<int>(count), MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &request);
    CUDA(standin_hold)();
    later = std::thread([] {
      while (!may_go_on) std::this_thread::yield();
      CUDA(standin_release)();
    });
  } else if (rank == 0) {
    MPI_Recv(message.data(), static_cast<int>(count), MPI_DOUBLE, 1, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    kill(processes[1], SIGUSR1);
  }
  allreduce(from.data(), to.data(), 100);
  if (later.joinable()) later.join();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_sums(to, 100, "behind a message");
  test::check(message.back() == (rank < 2 ? 1 : rank), "the message");
}

// Rank 1's copies do not end. WHICH says which they are: those from a device, or those to it. With
// WHICH=fails it is the same, and rank 0's first copy fails.
void stuck() {
  const std::string_view which = std::getenv("WHICH");
  constexpr size_t count = 1000;
  all_gone_at_end = false;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const bool is_on_device = rank == 1 || (rank == 0 && which == "fails");
  KindMemory from(is_on_device && which != "to" ? Kind::device : Kind::host, count * 8);
  KindMemory to(is_on_device ? Kind::device : Kind::host, count * 8);
  from.put(ones(count));
  if (rank == 1) CUDA(standin_hold)();
  if (rank == 0 && which == "fails") CUDA(standin_fail)("copy", "1");
  expect_error([&] {
    return MPI_Allreduce(from.data(), to.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  });
  CUDA(standin_release)();
}
