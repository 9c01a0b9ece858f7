// SPDX-License-Identifier: BSD-3-Clause
//
// The public interface of libsluice, for C and C++. A program does not need it: Sluice is preloaded
// or linked, and intercepts the MPI calls. A program can ask here whether Sluice is loaded, which
// version it is, and what it did; and it finds datatypes here that MPI lacks.
//
// The library defines functions of MPI 4 over every MPI. If MPI lacks those with large counts
// (MPI_Bcast_c), a call that Sluice leaves to MPI is one of MPI_Bcast, if all counts and
// displacements fit in an int, and else an error of class MPI_ERR_COUNT. If MPI lacks
// MPI_Comm_create_from_group, a call of that is an error of class MPI_ERR_UNSUPPORTED_OPERATION.
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0
#define SLUICE_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

// The version of the loaded library, in the form of SLUICE_VERSION: a constant string. May be
// called at any time, before MPI_Init too. A program that must also run without Sluice looks the
// function up: dlsym(RTLD_DEFAULT, "sluice_version") is null if Sluice is not loaded.
__attribute__((visibility("default"))) const char* sluice_version(void);

// Declared if <mpi.h> was included before.
#ifdef MPI_VERSION

// Datatypes of 16-bit floating-point numbers, which MPI lacks: IEEE half precision, and bfloat16,
// the upper half of a float. Each type is made at the first call and belongs to Sluice: do not free
// it. In every MPI call it is a datatype of two bytes. In the reductions that Sluice implements it
// also works with MPI_SUM, MPI_PROD, MPI_MIN and MPI_MAX: each operation is computed in float and
// rounded once, to the nearest, ties to even. Call between MPI_Init and MPI_Finalize. Local; any
// thread, if MPI's thread level allows it. Returns MPI_SUCCESS, or an error code.
__attribute__((visibility("default"))) int sluice_type_float16(MPI_Datatype* type);
__attribute__((visibility("default"))) int sluice_type_bfloat16(MPI_Datatype* type);

// Collectives on a vector that this process has in several buffers, as programs with a GPU each
// have: n buffers, each of `count` elements of the datatype, which must not overlap; in host memory
// and on CUDA devices, in any mix. n may differ between ranks. Blocking; the arguments otherwise,
// and errors, as with MPI_Allreduce and MPI_Bcast, whose calls on other ranks they match.
//   sluice_allreduce_multi  each buffer holds an operand, and gets the reduction of all buffers of
//   all
//                           ranks, in the order of ranks and of each rank's buffers (no
//                           MPI_IN_PLACE; no predefined operation on a type for which MPI does not
//                           define it, even if MPI_Allreduce takes it)
//   sluice_bcast_multi      the root's first buffer holds the data, which all buffers of all ranks
//   get
// Local reductions and copies run beside the messages, and what is sent does not depend on n. (They
// stand where gloo has allreduces and broadcasts of several pointers.)
__attribute__((visibility("default"))) int sluice_allreduce_multi(void* const buffers[], int n,
                                                                  int count, MPI_Datatype datatype,
                                                                  MPI_Op op, MPI_Comm comm);
__attribute__((visibility("default"))) int sluice_bcast_multi(void* const buffers[], int n,
                                                              int count, MPI_Datatype datatype,
                                                              int root, MPI_Comm comm);

// The algorithm that ran this process's last collective on a communicator, by its name in
// `sluice info`: a constant string; "nccl" if NCCL carried the call (SLUICE_NCCL); "ipc" if CUDA
// IPC did (SLUICE_CUDA_IPC); "mpi" if MPI did it, or if there was none yet. Local. Call between
// MPI_Init and MPI_Finalize, and not while another thread is in a collective on the communicator.
__attribute__((visibility("default"))) const char* sluice_last_algorithm(MPI_Comm comm);

#endif

#ifdef __cplusplus
}
#endif

#endif
