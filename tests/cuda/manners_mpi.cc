// SPDX-License-Identifier: BSD-3-Clause
//
// How MPI is asked whether it takes device memory itself. The functions here come before MPI's.
#include <cstdlib>
#include <cstring>

#include "tests/cuda/manners.h"

namespace {

int asked_by_new = 0, asked_by_old = 0;

bool has_version() {
  const char* const version = std::getenv("VERSION");
  return version && *version;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
int MPIX_GPU_query_support(int, int* is_supported) {
  ++asked_by_new;
  *is_supported = 0;
  return MPI_SUCCESS;
}

int MPIX_Query_cuda_support() {
  ++asked_by_old;
  return 0;
}

int PMPI_Get_library_version(char* version, int* length) {
  std::strcpy(version, has_version() ? std::getenv("VERSION") : "an MPI");
  *length = static_cast<int>(std::strlen(version));
  return MPI_SUCCESS;
}
}
#pragma GCC visibility pop

void asked() {
  KindMemory from(Kind::device, 800), to(Kind::device, 800);
  from.put(ones(100));
  allreduce(from.data(), to.data(), 100);
  expect_sums(to, 100, "done by MPI");
  test::check(asked_by_old == 0, "asked by the old function");
  test::check(asked_by_new == (has_version() ? 0 : 1), "asked by the new function");
}
