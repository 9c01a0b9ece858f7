// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/progress_request.h"

namespace sluice {
namespace {

int query(void*, MPI_Status* status) {
  *status = {};
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  return MPI_SUCCESS;
}

int free_nothing(void*) { return MPI_SUCCESS; }

int cancel_nothing(void*, int) { return MPI_SUCCESS; }

}  // namespace

bool ProgressRequest::start() {
  alive_ =
      real().Grequest_start(query, free_nothing, cancel_nothing, nullptr, &request_) == MPI_SUCCESS;
  return alive_;
}

void ProgressRequest::progress_mpi() {
  if (!alive_.load(std::memory_order_relaxed)) return;
  if (busy_.test_and_set(std::memory_order_acquire)) return;
  int done = 0;
  real().Test(&request_, &done, MPI_STATUS_IGNORE);
  busy_.clear(std::memory_order_release);
}

void ProgressRequest::end() {
  if (!alive_.exchange(false)) return;
  while (busy_.test_and_set(std::memory_order_acquire)) {
  }
  real().Grequest_complete(request_);
  real().Wait(&request_, MPI_STATUS_IGNORE);
}

}  // namespace sluice
