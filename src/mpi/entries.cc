// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI functions that programs call: each row of the table, and the same with counts of 64 bits.
// Programs reach them through libsluice.so, which exports each as MPI_X and as PMPI_X: the Fortran
// bindings of some MPI libraries call PMPI_X, and tools which define MPI_X stack on top of Sluice.
#include "sluice/sluice.h"
#include "src/mpi/communicators.h"
#include "src/mpi/entry.h"
#include "src/mpi/functions.h"
#include "src/mpi/narrow_floats.h"
#include "src/mpi/prepared_call.h"

namespace sluice {
namespace {

int initialized(int result) {
  if (is_switched_off() || result != MPI_SUCCESS) return result;
  note_threads();
  begin_probes();
  return result;
}

int finalize() {
  if (pass_all()) return real().Finalize();
  end_collectives();
  end_probes();
  free_narrow_floats();
  const int result = real().Finalize();
  if (Runtime* const runtime = Runtime::get_if_made()) runtime->disconnect();
  return result;
}

}  // namespace
}  // namespace sluice

#define SLUICE_SET_BUFFER(role) buffers.set(role);
#define SLUICE_OF_ARGUMENTS(role) \
  sluice::for_mpi<std::string_view(#role) == "op">(arguments, arguments.role)
#define SLUICE_OF_KEPT(role) sluice::for_mpi<std::string_view(#role) == "op">(last.arguments, role)
#define SLUICE_IS_SAME(role) \
  &&last.is_same<sluice::Arguments::Either::role>(role, last.arguments.role)
#define SLUICE_IS_SAME_ARRAY(role) \
  &&last.is_same_array<sluice::Arguments::Either::role>(role, last.arguments.role)

// Returns from an entry if the call is in the communicator's call cache.
#define SLUICE_REPLAY(function, row, ...)                                            \
  sluice::Communicator* const known = sluice::last_communicator(comm);               \
  sluice::CallCache* const kept =                                                    \
      known && !sluice::is_passing() ? known->last(sluice::Function::row) : nullptr; \
  if (kept) {                                                                        \
    const sluice::CallCache& last = *kept;                                           \
    if (last.entry == entry SLUICE_EACH(SLUICE_IS_SAME, __VA_ARGS__)                 \
                          SLUICE_EACH(SLUICE_IS_SAME_ARRAY, __VA_ARGS__)) {          \
      sluice::Buffers buffers;                                                       \
      SLUICE_EACH(SLUICE_SET_BUFFER, __VA_ARGS__)                                    \
      switch (known->replay(*kept, buffers, &result)) {                              \
        case sluice::Communicator::Replay::done:                                     \
          return result;                                                             \
        case sluice::Communicator::Replay::by_mpi:                                   \
          if (last.was_handed_over) return table_row.call(kept->for_mpi());          \
          return sluice::real().function(SLUICE_LIST(SLUICE_OF_KEPT, __VA_ARGS__));  \
        case sluice::Communicator::Replay::refused:                                  \
          break;                                                                     \
      }                                                                              \
    }                                                                                \
  }

// function: the name that is called (Bcast or Bcast_c); row: the name in the table (Bcast).
#define SLUICE_DEFINE(PARAMETER, function, row, ...)                                     \
  int PMPI_##function(SLUICE_LIST(PARAMETER, __VA_ARGS__)) {                             \
    static constexpr char entry[] = "MPI_" #function;                                    \
    static constexpr sluice::Row table_row{                                              \
        entry,                                                                           \
        sluice::Function::row,                                                           \
        sluice::describe_##row,                                                          \
        [](const sluice::Probe& probe) {                                                 \
          return sluice::real().row(SLUICE_LIST(SLUICE_OF_PROBE, __VA_ARGS__));          \
        },                                                                               \
        [](const sluice::Arguments& arguments) {                                         \
          return sluice::real().row(SLUICE_LIST(SLUICE_OF_ARGUMENTS, __VA_ARGS__));      \
        },                                                                               \
        [](const sluice::Arguments& arguments) {                                         \
          return sluice::real().function(SLUICE_LIST(SLUICE_OF_ARGUMENTS, __VA_ARGS__)); \
        }};                                                                              \
    int result;                                                                          \
    SLUICE_REPLAY(function, row, __VA_ARGS__)                                            \
    sluice::Arguments arguments;                                                         \
    SLUICE_EACH(SLUICE_ASSIGN, __VA_ARGS__)                                              \
    if (sluice::make_call(table_row, arguments, &result)) return result;                 \
    return sluice::real().function(SLUICE_LIST(SLUICE_FOR_MPI, __VA_ARGS__));            \
  }
#define SLUICE_DEFINE_SMALL(function, ...) \
  SLUICE_DEFINE(SLUICE_SMALL, function, function, __VA_ARGS__)
#define SLUICE_DEFINE_LARGE(function, ...) \
  SLUICE_DEFINE(SLUICE_LARGE, function##_c, function, __VA_ARGS__)

extern "C" {

SLUICE_COLLECTIVES(SLUICE_DEFINE_SMALL)
SLUICE_COUNTING_COLLECTIVES(SLUICE_DEFINE_LARGE)

int PMPI_Init(int* argc, char*** argv) {
  return sluice::initialized(sluice::real().Init(argc, argv));
}

int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return sluice::initialized(sluice::real().Init_thread(argc, argv, required, provided));
}

int PMPI_Finalize() { return sluice::finalize(); }

}  // extern "C"
