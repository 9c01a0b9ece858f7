/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cleaned STEPS: a program that uses OpenSSL itself, and cleans it up before it is done with MPI.
 * Steps: o, uses OpenSSL; c, cleans it up; 0, 1, 2, that rank alone does; b, a broadcast; s, a sum;
 * d, a sum on a new communicator; x, main ends, and an exit handler does the rest, after OpenSSL's
 * own; f, MPI_Finalize. Prints how each collective ends.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int RAND_bytes(unsigned char* buffer, int size);
void OPENSSL_cleanup(void);

static const char* steps;
static int rank;

static void tell(const char* what, int result, int good) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length;
  if (result != MPI_SUCCESS) MPI_Error_string(result, text, &length);
  printf("%s: %s\n", what, result == MPI_SUCCESS ? (good ? "good" : "wrong") : text);
  fflush(stdout);
}

static void sum(const char* what, MPI_Comm of) {
  int one = 1, all = 0, size, result;
  MPI_Comm_size(of, &size);
  result = MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, of);
  tell(what, result, all == size);
}

static void step(char which) {
  unsigned char drawn[4];
  int number = 1;
  MPI_Comm other;
  if (which == 'o' && RAND_bytes(drawn, sizeof drawn) != 1) abort();
  if (which == 'c' || which == '0' + rank) OPENSSL_cleanup();
  if (which == 'b') tell("broadcast", MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD), 1);
  if (which == 's') sum("sum", MPI_COMM_WORLD);
  if (which == 'd') {
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    sum("new", other);
    MPI_Comm_free(&other);
  }
  if (which == 'f') MPI_Finalize();
}

static void go_on(void) {
  while (*steps) step(*steps++);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  steps = argv[1];
  if (strchr(steps, 'x')) atexit(go_on);
  while (*steps && *steps != 'x') step(*steps++);
  if (*steps) ++steps;
  return 0;
}
