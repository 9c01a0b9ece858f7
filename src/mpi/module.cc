// SPDX-License-Identifier: BSD-3-Clause
//
// The module's table: the addresses of the functions of src/mpi that libsluice.so jumps to.
#include "src/chooser/module.h"

#include "src/mpi/real.h"
//
#include "sluice/sluice.h"
#include "src/chooser/functions.h"

#ifdef SLUICE_OPEN_MPI
#define SLUICE_MODULE_FILE "libsluice-openmpi.so"
#elif defined(SLUICE_MPICH)
#define SLUICE_MODULE_FILE "libsluice-mpich.so"
#elif defined(SLUICE_STANDARD_ABI)
#define SLUICE_MODULE_FILE "libsluice-mpi5.so"
#endif

extern "C" {

__attribute__((visibility("default"))) const SluiceModule* sluice_module(
    const SluiceLookUp* look_up, const char** missing) {
#define SLUICE_MPI_ADDRESS(name) reinterpret_cast<void*>(&PMPI_##name),
#define SLUICE_OWN_ADDRESS(name) reinterpret_cast<void*>(&(name)),
  static void* const functions[] = {SLUICE_MPI_FUNCTIONS(SLUICE_MPI_ADDRESS)
                                        SLUICE_OWN_FUNCTIONS(SLUICE_OWN_ADDRESS)};
#undef SLUICE_OWN_ADDRESS
#undef SLUICE_MPI_ADDRESS
  static constexpr SluiceModule module{SLUICE_MODULE_VERSION, SLUICE_VERSION,
                                       sizeof functions / sizeof *functions, functions,
                                       SLUICE_MODULE_FILE};
  sluice::use_look_up(look_up);
  *missing = sluice::real().missing;
  return &module;
}

}  // extern "C"
