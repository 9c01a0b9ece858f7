// SPDX-License-Identifier: BSD-3-Clause
//
// The functions that make persistent collectives, for each row of the table, and the same with
// counts of 64 bits; and those that start requests and free them.
#include "src/mpi/entry.h"
#include "src/mpi/persistent_call.h"
#include "src/mpi/persistent_requests.h"

// function: the name that is called (Bcast_init or Bcast_init_c); row: the name in the table
// (Bcast); small: the function without _c.
#define SLUICE_DEFINE_INIT(PARAMETER, function, small, row, ...)                                  \
  int PMPI_##function(SLUICE_LIST(PARAMETER, __VA_ARGS__), MPI_Info info, MPI_Request* request) { \
    static constexpr sluice::Row table_row{                                                       \
        "MPI_" #function,                                                                         \
        sluice::Function::row,                                                                    \
        sluice::describe_##row,                                                                   \
        [](const sluice::Probe& probe) {                                                          \
          return sluice::real().row(SLUICE_LIST(SLUICE_OF_PROBE, __VA_ARGS__));                   \
        },                                                                                        \
        nullptr,                                                                                  \
        nullptr};                                                                                 \
    if (!sluice::real().small) return sluice::lacks_persistent(table_row, comm);                  \
    sluice::Arguments arguments;                                                                  \
    SLUICE_EACH(SLUICE_ASSIGN, __VA_ARGS__)                                                       \
    int result;                                                                                   \
    if (sluice::init_persistent(table_row, arguments, request, &result)) return result;           \
    return sluice::real().function(SLUICE_LIST(SLUICE_FOR_MPI, __VA_ARGS__), info, request);      \
  }
#define SLUICE_DEFINE_SMALL_INIT(row, ...) \
  SLUICE_DEFINE_INIT(SLUICE_SMALL, row##_init, row##_init, row, __VA_ARGS__)
#define SLUICE_DEFINE_LARGE_INIT(row, ...) \
  SLUICE_DEFINE_INIT(SLUICE_LARGE, row##_init_c, row##_init, row, __VA_ARGS__)

namespace {

bool has_persistent() { return sluice::persistent_requests.load(std::memory_order_relaxed) > 0; }

}  // namespace

extern "C" {

SLUICE_COLLECTIVES(SLUICE_DEFINE_SMALL_INIT)
SLUICE_COUNTING_COLLECTIVES(SLUICE_DEFINE_LARGE_INIT)

int PMPI_Start(MPI_Request* request) {
  return has_persistent() ? sluice::start_request(request) : sluice::real().Start(request);
}

int PMPI_Startall(int count, MPI_Request* requests) {
  return has_persistent() ? sluice::start_requests(count, requests)
                          : sluice::real().Startall(count, requests);
}

int PMPI_Request_free(MPI_Request* request) {
  return has_persistent() ? sluice::free_request(request) : sluice::real().Request_free(request);
}

}  // extern "C"
