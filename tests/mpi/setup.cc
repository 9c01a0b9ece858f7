// SPDX-License-Identifier: BSD-3-Clause
//
// setup MODE: a communicator's set-up, which is part of its first collective.
//   pending   with other operations pending on the communicator, of the program and of MPI
//   late      the last rank comes 7 s after the others
//   absent    the last rank never comes
//   gather N FILE  the first collective is an MPI_Allgather of N bytes, and errors are printed;
//             FILE names files by which the ranks wait until the others have ended
//   info      only one rank gives an MPI info that does not name Sluice
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

constexpr unsigned watchdog = 60;  // seconds

void sum_up(MPI_Comm comm, const std::string& what) {
  int rank = 0, size = 0, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  test::check(sum == size * (size + 1) / 2, what);
}

// The first collective runs while the communicator is being duplicated.
void copy_beside(MPI_Comm comm) {
  MPI_Comm copies[3];
  MPI_Request requests[3];
  for (int i = 0; i < 3; ++i) MPI_Comm_idup(comm, &copies[i], &requests[i]);
  sum_up(comm, "a sum beside a copy");
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  for (MPI_Comm& copy : copies) {
    sum_up(copy, "a sum on the copy");
    MPI_Comm_free(&copy);
  }
}

// A receive with wildcards is pending.
void receive_beside(MPI_Comm comm) {
  int rank = 0, size = 0, received = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Request request;
  MPI_Irecv(&received, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
  sum_up(comm, "a sum beside a receive");
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  MPI_Send(&rank, 1, MPI_INT, next, 7, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  test::check(received == last, "what a receive with wildcards took");
}

// Non-blocking collectives, started before the first collective and completed after it.
void synchronise_beside(MPI_Comm comm) {
  int size = 0, one = 1, sums[2] = {0, 0};
  MPI_Comm_size(comm, &size);
  std::vector<int> ranks(static_cast<size_t>(size));
  MPI_Request requests[4];
  MPI_Ibarrier(comm, &requests[0]);
  MPI_Iallreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, comm, &requests[1]);
  MPI_Iallgather(&one, 1, MPI_INT, ranks.data(), 1, MPI_INT, comm, &requests[2]);
  sum_up(comm, "a sum beside collectives that do not block");
  MPI_Iallreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, comm, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  test::check(sums[0] == size && sums[1] == size, "sums that do not block");
  for (const int each : ranks) test::check(each == 1, "a gather that does not block");
}

void be_beside() {
  copy_beside(MPI_COMM_WORLD);  // its first collective
  void (*const ways[])(MPI_Comm) = {copy_beside, receive_beside, synchronise_beside};
  for (const auto way : ways) {
    MPI_Comm copy, turned;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -test::rank, &turned);
    way(copy);
    way(turned);
    MPI_Comm_free(&turned);
    MPI_Comm_free(&copy);
  }
}

void gather(size_t bytes, const std::string& file) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const std::vector<char> mine(bytes, 1);
  std::vector<char> all(bytes * static_cast<size_t>(test::size));
  const int count = static_cast<int>(bytes);
  const int result =
      MPI_Allgather(mine.data(), count, MPI_CHAR, all.data(), count, MPI_CHAR, MPI_COMM_WORLD);
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  std::printf("rank %d: %s\n", test::rank, text);
  std::fflush(stdout);
  close(creat((file + std::to_string(test::rank)).c_str(), 0600));
  for (int rank = 0; rank < test::size; ++rank) {  // MPI ends a job when a rank exits so
    while (access((file + std::to_string(rank)).c_str(), F_OK) != 0) usleep(10'000);
  }
  sleep(1);
  _exit(0);
}

void inform() {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  for (int i = 0; i < 3; ++i) {
    for (MPI_Comm comm : {MPI_COMM_WORLD, copy}) {
      sum_up(comm, "a sum where one rank gives an info");
      if (test::rank != i % test::size) continue;
      MPI_Info info;
      MPI_Info_create(&info);
      if (i > 0) MPI_Info_set(info, "mpi_assert_no_any_tag", "false");
      MPI_Comm_set_info(comm, info);
      MPI_Info_free(&info);
    }
  }
  sum_up(copy, "a sum after one");
  MPI_Comm_free(&copy);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  alarm(watchdog);
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "pending") be_beside();
  if (mode == "late") IN_MPI(MPI_Barrier)(MPI_COMM_WORLD);  // all have left MPI_Init
  if (mode == "late" && test::rank == test::size - 1) sleep(7);
  while (mode == "absent" && test::rank == test::size - 1) pause();
  if (mode == "gather") gather(std::strtoul(argv[2], nullptr, 0), argv[3]);
  if (mode == "info") inform();
  sum_up(MPI_COMM_WORLD, "a sum of all");
  return test::finish("setup");
}
