/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI 5's ABI: rank 1 makes a reduction before it tells the MPI library the sizes of Fortran's
 * types, and rank 0 after; then they sum up an MPI_REAL.
 */
#include <mpi.h>
#include <stdio.h>

static void tell_of_fortran(void) {
  static const char* const four[] = {"mpi_logical_size", "mpi_integer_size", "mpi_real_size"};
  MPI_Info info = MPI_INFO_NULL;
  MPI_Abi_get_fortran_info(&info);
  if (info == MPI_INFO_NULL) {
    MPI_Info_create(&info);
    for (int i = 0; i < 3; ++i) MPI_Info_set(info, four[i], "4");
    MPI_Info_set(info, "mpi_double_precision_size", "8");
    MPI_Abi_set_fortran_info(info);
  }
  MPI_Info_free(&info);
}

int main(int argc, char** argv) {
  int rank = 0, one = 1, own = 0;
  float number, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) MPI_Allreduce(&one, &own, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  tell_of_fortran();
  number = (float)(rank + 1);
  MPI_Allreduce(&number, &sum, 1, MPI_REAL, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d: %g\n", rank, sum);
  MPI_Finalize();
  return 0;
}
