// SPDX-License-Identifier: BSD-3-Clause
//
// plaintext TEXT CALLS: broadcasts 64 KB of this text, over and over, from each rank in turn, and
// adds numbers up between. tests/hosts/test_tls listens.
#include <cstdlib>
#include <string>

#include "tests/mpi/harness.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3) test::fail("plaintext TEXT CALLS");
  std::string said;
  while (said.size() < 65536) said += argv[1];
  const int calls = std::atoi(argv[2]);
  for (int call = 0; call < calls; ++call) {
    const int root = call % ranks;
    std::string heard = rank == root ? said : std::string(said.size(), ' ');
    MPI_Bcast(heard.data(), static_cast<int>(heard.size()), MPI_CHAR, root, MPI_COMM_WORLD);
    test::check(heard == said, "the text is right");
    int sum = 0;
    const int mine = rank + call;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    test::check(sum == ranks * (ranks - 1) / 2 + ranks * call, "the sum is right");
  }
  test::summarize("plaintext");
  MPI_Finalize();
  return 0;
}
