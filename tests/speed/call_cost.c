/* SPDX-License-Identifier: BSD-3-Clause
 *
 * call_cost [ROUNDS [CALLS]]: nanoseconds that a call takes longer because it enters libsluice.so,
 * which jumps to the module's function, than if the program called that function itself. One rank
 * calls MPI_Barrier on MPI_COMM_SELF by both addresses in alternation; the difference is the median
 * of the rounds'. x86-64 only, where the address of the module's function is read from the jump.
 * Built and started by tests/speed/speed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Barrier(MPI_Comm);

/* Where the jump at this address leads: jmp *offset(%rip). Null if it is another instruction. */
static Barrier* follow(const void* address) {
  const unsigned char* const code = address;
  const void* target;
  int32_t offset;
  if (code[0] != 0xff || code[1] != 0x25) return NULL;
  memcpy(&offset, code + 2, sizeof offset);
  memcpy(&target, code + 6 + offset, sizeof target);
  return (Barrier*)(uintptr_t)target;
}

static const char* file_of(const void* address) {
  Dl_info about;
  return dladdr(address, &about) ? about.dli_fname : "";
}

static double time_calls(Barrier* barrier, int calls) {
  const double began = MPI_Wtime();
  for (int i = 0; i < calls; ++i) barrier(MPI_COMM_SELF);
  return 1e9 * (MPI_Wtime() - began) / calls;
}

static int compare(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 2001, calls = argc > 2 ? atoi(argv[2]) : 1000;
  double* const by_jump = malloc(3 * (size_t)rounds * sizeof *by_jump);
  double *const direct = by_jump + rounds, *const longer = direct + rounds;
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_SELF);
  void* const address = dlsym(RTLD_DEFAULT, "MPI_Barrier");
  Barrier* const function = follow(address);
  if (!strstr(file_of(address), "/libsluice.so") || !function ||
      !strstr(file_of((void*)(uintptr_t)function), "/libsluice-")) {
    fprintf(stderr, "call_cost: MPI_Barrier is no jump of libsluice.so into a module\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int i = 0; i < rounds; ++i) {
    const int first = i % 2; /* each way comes first in every other round */
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == first)
        by_jump[i] = time_calls((Barrier*)(uintptr_t)address, calls);
      else
        direct[i] = time_calls(function, calls);
    }
    longer[i] = by_jump[i] - direct[i];
  }
  printf("through libsluice.so %.2f ns, directly %.2f ns, longer by %.2f ns\n",
         median(by_jump, rounds), median(direct, rounds), median(longer, rounds));
  free(by_jump);
  MPI_Finalize();
  return 0;
}
