// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cuda/nccl_calls.h"

#include <vector>

#include "tests/cuda/kinds.h"

namespace test {

std::string algorithm_of(MPI_Comm communicator) {
  using Function = const char*(MPI_Comm);
  auto* const function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, "sluice_last_algorithm"));
  return function ? function(communicator) : "no Sluice";
}

void start_nccl(MPI_Comm communicator) {
  constexpr int count = 100000, most_calls = 20000;
  int size = 0;
  MPI_Comm_size(communicator, &size);
  const std::vector<int> ones(count, 1), sums(count, size);
  KindMemory data(Kind::device, count * sizeof(int));
  for (int calls = 0; size > 1 && algorithm_of(communicator) != "nccl"; ++calls) {
    if (calls == most_calls) fail("NCCL does not start");
    data.put(ones);
    MPI_Allreduce(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_SUM, communicator);
    check(data.get<int>(count) == sums, "a sum while NCCL starts");
  }
  // A rank whose next call fails would end the last one of these on ranks that are still in it.
  IN_MPI(MPI_Barrier)(communicator);
}

}  // namespace test
