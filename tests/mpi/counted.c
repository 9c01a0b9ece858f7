/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preloaded after Sluice: counts the calls that Sluice itself makes to MPI and prints the counts at
 * exit. (A program's own calls use the names without P, so they are not counted.) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int calls;

#define COUNTED(name, parameters, arguments)                \
  int PMPI_##name parameters {                              \
    int(*mpi) parameters = dlsym(RTLD_NEXT, "PMPI_" #name); \
    ++calls;                                                \
    return mpi arguments;                                   \
  }

COUNTED(Allgather,
        (const void* from, int count, MPI_Datatype type, void* to, int counts, MPI_Datatype types,
         MPI_Comm comm),
        (from, count, type, to, counts, types, comm))
COUNTED(Comm_create_errhandler, (MPI_Comm_errhandler_function * f, MPI_Errhandler* h), (f, h))
COUNTED(Comm_create_keyval,
        (MPI_Comm_copy_attr_function * copy, MPI_Comm_delete_attr_function* end, int* key, void* p),
        (copy, end, key, p))
COUNTED(Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler* handler), (comm, handler))
COUNTED(Comm_get_name, (MPI_Comm comm, char* name, int* length), (comm, name, length))
COUNTED(Comm_rank, (MPI_Comm comm, int* rank), (comm, rank))
COUNTED(Comm_set_attr, (MPI_Comm comm, int key, void* value), (comm, key, value))
COUNTED(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))
COUNTED(Comm_size, (MPI_Comm comm, int* size), (comm, size))
COUNTED(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made))
COUNTED(Comm_test_inter, (MPI_Comm comm, int* flag), (comm, flag))
COUNTED(Finalized, (int* flag), (flag))
COUNTED(Initialized, (int* flag), (flag))
COUNTED(Op_commutative, (MPI_Op op, int* commutes), (op, commutes))
COUNTED(Query_thread, (int* level), (level))
COUNTED(Send, (const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
        (data, count, type, to, tag, comm))
COUNTED(Type_create_keyval,
        (MPI_Type_copy_attr_function * copy, MPI_Type_delete_attr_function* end, int* key, void* p),
        (copy, end, key, p))
COUNTED(Type_get_envelope, (MPI_Datatype type, int* i, int* a, int* t, int* c), (type, i, a, t, c))

int PMPI_Finalize(void) {
  int (*mpi)(void) = dlsym(RTLD_NEXT, "PMPI_Finalize");
  fprintf(stderr, "%d calls of MPI for Sluice\n", calls);
  return mpi();
}
