// SPDX-License-Identifier: BSD-3-Clause
//
// The non-blocking collectives that programs call: for each row of the table, and the same with
// counts of 64 bits.
#include "src/mpi/entry.h"
#include "src/mpi/nonblocking_call.h"

// function: the name that is called (Ibcast or Ibcast_c); row: the name in the table (Bcast).
#define SLUICE_DEFINE_I(PARAMETER, function, row, ...)                                    \
  int PMPI_##function(SLUICE_LIST(PARAMETER, __VA_ARGS__), MPI_Request* request) {        \
    static constexpr sluice::Row table_row{                                               \
        "MPI_" #function,                                                                 \
        sluice::Function::row,                                                            \
        sluice::describe_##row,                                                           \
        [](const sluice::Probe& probe) {                                                  \
          return sluice::real().row(SLUICE_LIST(SLUICE_OF_PROBE, __VA_ARGS__));           \
        },                                                                                \
        nullptr,                                                                          \
        nullptr};                                                                         \
    sluice::Arguments arguments;                                                          \
    SLUICE_EACH(SLUICE_ASSIGN, __VA_ARGS__)                                               \
    int result;                                                                           \
    if (sluice::start_nonblocking(table_row, arguments, request, &result)) return result; \
    return sluice::real().function(SLUICE_LIST(SLUICE_FOR_MPI, __VA_ARGS__), request);    \
  }
#define SLUICE_DEFINE_NAMED(PARAMETER, function, row, ...) \
  SLUICE_DEFINE_I(PARAMETER, function, row, __VA_ARGS__)
#define SLUICE_DEFINE_LARGE_NAMED(function, row, ...) \
  SLUICE_DEFINE_I(SLUICE_LARGE, function##_c, row, __VA_ARGS__)
#define SLUICE_DEFINE_LARGE_OF(function, row, ...) \
  SLUICE_DEFINE_LARGE_NAMED(function, row, __VA_ARGS__)
#define SLUICE_DEFINE_SMALL(row, ...) \
  SLUICE_DEFINE_NAMED(SLUICE_SMALL, SLUICE_NONBLOCKING(row), row, __VA_ARGS__)
#define SLUICE_DEFINE_LARGE(row, ...) \
  SLUICE_DEFINE_LARGE_OF(SLUICE_NONBLOCKING(row), row, __VA_ARGS__)

extern "C" {

SLUICE_COLLECTIVES(SLUICE_DEFINE_SMALL)
SLUICE_COUNTING_COLLECTIVES(SLUICE_DEFINE_LARGE)

}  // extern "C"
