// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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
            "in all 10.000 ms, 0.5 % of the 2.000 s since the first call; 6 of 6 calls carried, "
            "100.0 %\n");
}

TEST(Statistics, TellHowManyCallsAreCarried) {
  Statistics statistics;
  statistics.add("MPI_COMM_WORLD", Collective::barrier, "flat", "shm", {5, 0, 1});
  statistics.add("MPI_COMM_WORLD", Collective::gather, "mpi", "mpi", {2, 0, 1});
  statistics.count_left();
  const std::string table = statistics.table(seconds(1));
  EXPECT_NE(table.find("; 5 of 8 calls carried, 62.5 %\n"), std::string::npos) << table;
}

TEST(Statistics, HaveRoomForLongNames) {
  Statistics statistics;
  const std::string fits = "a communicator of 16384 ranks, by the name of " + std::string(18, 'x');
  const std::string longer = std::string(60, 'y') + "\u00e4\u00e4\u00e4", lines = "two\nlines";
  for (const std::string& name : {fits, longer, lines}) {
    statistics.add(name, Collective::alltoallv, "pairwise", "tcp", {1, 1000000, 1'000'000});
  }
  const std::string table = statistics.table(seconds(1));
  EXPECT_NE(table.find("\n" + fits + " alltoallv "), std::string::npos) << table;
  EXPECT_NE(table.find("\n" + std::string(60, 'y') + "...  alltoallv "), std::string::npos)
      << table;
  EXPECT_NE(table.find("\ntwo lines" + std::string(55, ' ') + " alltoallv "), std::string::npos)
      << table;
  EXPECT_EQ(std::ranges::count(table, '\n'), 5);
}

}  // namespace
}  // namespace sluice
