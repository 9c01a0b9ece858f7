// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/statistics.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using std::chrono::seconds;

TEST(Statistics, HaveNothingToSayOfNoCalls) { EXPECT_EQ(Statistics().table(seconds(1)), ""); }

TEST(Statistics, AddUpWhatIsOfAKindAndSortByTime) {
  Statistics statistics;
  statistics.add("MPI_COMM_WORLD", Collective::barrier, "flat", "shm", {2, 0, 1'000'000});
  statistics.add("MPI_COMM_WORLD", Collective::allreduce, "ring", "tcp", {1, 1024, 2'000'000});
  statistics.add("MPI_COMM_WORLD", Collective::allreduce, "ring", "tcp", {3, 3072, 7'000'000});
  EXPECT_EQ(statistics.table(seconds(2)),
            "communicator             collective     algorithm            transport        calls"
            "      bytes      time ms     us/call\n"
            "MPI_COMM_WORLD           allreduce      ring                 tcp                  4"
            "         4k        9.000     2250.00\n"
            "MPI_COMM_WORLD           barrier        flat                 shm                  2"
            "          0        1.000      500.00\n"
            "in all 10.000 ms, 0.5 % of the 2.000 s since the first call\n");
}

}  // namespace
}  // namespace sluice
