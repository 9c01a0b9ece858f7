/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sum [return] [silent]: one MPI_Allreduce on each rank, and its result. "return": under
 * MPI_ERRORS_RETURN, twice. The smallest program, linked in all possible ways.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, size, sum = 0, one = 1, failed = 0, calls, result;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  calls = argc > 1 && strcmp(argv[1], "return") == 0 ? 2 : 1;
  if (calls == 2) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  while (calls-- > 0) {
    result = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (result != MPI_SUCCESS) {
      char text[MPI_MAX_ERROR_STRING];
      int length, class_of;
      MPI_Error_class(result, &class_of);
      MPI_Error_string(result, text, &length);
      printf("rank %d: error of %s class: %s\n", rank,
             class_of > MPI_ERR_LASTCODE ? "an added" : "a predefined", text);
      failed = 1;
    } else {
      printf("rank %d: sum %d of %d\n", rank, sum, size);
      if (sum != size) failed = 1;
    }
    fflush(stdout);
  }
  if (failed) {
    sleep(1); /* MPICH ends a job as soon as a rank exits like this */
    _exit(3); /* MPI_Finalize may wait for ranks that have ended */
  }
  MPI_Finalize();
  return 0;
}
