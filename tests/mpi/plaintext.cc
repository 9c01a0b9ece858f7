// SPDX-License-Identifier: BSD-3-Clause
//
// plaintext TEXT CALLS: broadcasts 64 KB of this text, over and over, from each rank in turn, and
// adds numbers up between. tests/hosts/test_tls listens.
#include <cstdlib>
#include <string>

#include "tests/mpi/harness.h"

int main(int argc, char** argv) {
  test::start(argc, argv);
  if (argc != 3) test::fail("plaintext TEXT CALLS");
  std::string said;
  while (said.size() < 65536) said += argv[1];
  const int calls = std::atoi(argv[2]);
  for (int call = 0; call < calls; ++call) {
    const int root = call % test::size;
    std::string heard = test::rank == root ? said : std::string(said.size(), ' ');
    MPI_Bcast(heard.data(), static_cast<int>(heard.size()), MPI_CHAR, root, MPI_COMM_WORLD);
    test::check(heard == said, "the text is right");
    int sum = 0;
    const int mine = test::rank + call;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    test::check(sum == test::size * (test::size - 1) / 2 + test::size * call, "the sum is right");
  }
  return test::finish("plaintext");
}
