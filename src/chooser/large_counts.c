/* SPDX-License-Identifier: BSD-3-Clause */
#include "src/chooser/large_counts.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/chooser/chooser.h"

#ifndef __LP64__
#error "MPI_Count and MPI_Aint have 64 bits, as long has"
#endif

enum { most_arguments = 11 };

/* Handles are of any type here: each argument is a number or an address in a register or on the
 * stack, and those behind a function's last are passed for nothing. */
typedef int Function(long, long, long, long, long, long, long, long, long, long, long);

/* A function of the MPI library. */
struct Symbol {
  const char* name;
  Function* function; /* null: not looked up yet */
};

/* A function with counts of int. roles, a letter for each argument: n is a count, v an array of
 * counts or displacements; N and V are such of the sender, which do not count if its buffer is
 * MPI_IN_PLACE; R is a count of the receiver, likewise; m and w are a count and an array that count
 * on the root alone; r is the root, b the receiver's buffer, c the communicator. */
struct Small {
  struct Symbol symbol;
  const char* roles;
};

/* A call of it. */
struct Call {
  struct Small* of;
  void* caller;
  long arguments[most_arguments];
  int* arrays; /* those that are arguments; null: none are */
};

/* Classes of errors that have this number in every MPI library; or that are one in each. */
enum { success = 0, error_count = 2, error_other = 16 };

static Function* find(struct Symbol* symbol, void* caller) {
  if (!sluice_has_one_mpi()) return (Function*)sluice_function(symbol->name, caller);
  Function* found = __atomic_load_n(&symbol->function, __ATOMIC_RELAXED);
  if (found) return found;
  found = (Function*)sluice_function(symbol->name, caller);
  __atomic_store_n(&symbol->function, found, __ATOMIC_RELAXED);
  return found;
}

static long argument(const struct Call* call, char role) {
  return call->arguments[strchr(call->of->roles, role) - call->of->roles];
}

static long communicator(const struct Call* call) { return argument(call, 'c'); }

static int fail(const struct Call* call, int error, const char* why) {
  static struct Symbol handle = {"PMPI_Comm_call_errhandler", NULL};
  Function* const handler = find(&handle, call->caller);
  sluice_print("sluice: error: %s_c: %s\n", call->of->symbol.name + 1, why);
  if (handler) handler(communicator(call), error, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  return error;
}

static int is_int(int64_t number) { return number >= INT_MIN && number <= INT_MAX; }

/* Calls a function with a communicator and a result. */
static int ask(const struct Call* call, struct Symbol* symbol, int* result) {
  Function* const function = find(symbol, call->caller);
  return function ? function(communicator(call), (long)result, 0, 0, 0, 0, 0, 0, 0, 0, 0)
                  : error_other;
}

/* How many blocks the arrays of a call have: the ranks of the other group, if there is one. (What
 * reduce_scatter scatters has one for each rank of this group.) */
static int count_blocks(const struct Call* call, int* blocks) {
  static struct Symbol test = {"PMPI_Comm_test_inter", NULL}, size = {"PMPI_Comm_size", NULL},
                       remote_size = {"PMPI_Comm_remote_size", NULL};
  int is_inter = 0;
  const int is_scattered = strstr(call->of->symbol.name, "educe_scatter") != NULL;
  const int result = is_scattered ? success : ask(call, &test, &is_inter);
  if (result != success) return result;
  return ask(call, is_inter ? &remote_size : &size, blocks);
}

/* Whether all fit. */
static int narrow(const int64_t* wide, int count, int* narrow) {
  for (int i = 0; i < count; ++i) {
    if (!is_int(wide[i])) return 0;
    narrow[i] = (int)wide[i];
  }
  return 1;
}

static int is_in_place(long buffer) { return buffer == 1 || buffer == -1; }

/* Between two groups the root passes MPI_ROOT, the others of its group MPI_PROC_NULL. */
static int is_root(const struct Call* call) {
  static struct Symbol test = {"PMPI_Comm_test_inter", NULL}, rank = {"PMPI_Comm_rank", NULL};
  enum { highest_root = -3 }; /* of the numbers that MPI libraries give to MPI_ROOT */
  int is_inter = 0, own = -1;
  const int root = (int)argument(call, 'r');
  if (ask(call, &test, &is_inter) == success && is_inter) return root <= highest_root;
  return ask(call, &rank, &own) == success && root == own;
}

/* Whether an argument does not count on this rank. */
static int is_insignificant(const struct Call* call, char role) {
  if (strchr("NV", role)) return is_in_place(call->arguments[0]);
  if (role == 'R') return is_in_place(argument(call, 'b'));
  return strchr("mw", role) && !is_root(call);
}

/* Whether all arguments fit. */
static int narrow_arguments(struct Call* call, int blocks) {
  int* room = call->arrays;
  for (int i = 0; call->of->roles[i]; ++i) {
    long* const number = &call->arguments[i];
    const char role = call->of->roles[i];
    if (is_insignificant(call, role)) continue;
    if (strchr("nNmR", role) && !is_int(*number)) return 0;
    if (!strchr("vVw", role) || !*number) continue;
    if (!narrow((const int64_t*)*number, blocks, room)) return 0;
    *number = (long)room;
    room += blocks;
  }
  return 1;
}

static int prepare(struct Call* call) {
  int blocks = 0;
  if (strpbrk(call->of->roles, "vVw")) {
    const int result = count_blocks(call, &blocks);
    if (result != success) return result;
    call->arrays = malloc(sizeof(int) * 4 * ((size_t)blocks + 1));
    if (!call->arrays) return fail(call, error_other, "no memory for counts");
  }
  if (narrow_arguments(call, blocks)) return success;
  return fail(call, error_count,
              "this MPI library lacks it, and a count or displacement is too large for an int");
}

static int run(struct Call call) {
  Function* const function = find(&call.of->symbol, call.caller);
  if (!function) return fail(&call, error_other, "no MPI library has it");
  int result = prepare(&call);
  const long* const a = call.arguments;
  if (result == success)
    result = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
  /* (MPI reads the arrays of such a call until that has ended, or as long as its persistent request
   * exists, and tells nobody when.) */
  if (!strchr(call.of->roles, 'q')) free(call.arrays);
  return result;
}

#define PARAMETERS_5 long a, long b, long c, long d, long e
#define PARAMETERS_6 PARAMETERS_5, long f
#define PARAMETERS_7 PARAMETERS_6, long g
#define PARAMETERS_8 PARAMETERS_7, long h
#define PARAMETERS_9 PARAMETERS_8, long i
#define PARAMETERS_10 PARAMETERS_9, long j
#define PARAMETERS_11 PARAMETERS_10, long k
#define ARGUMENTS_5 a, b, c, d, e
#define ARGUMENTS_6 ARGUMENTS_5, f
#define ARGUMENTS_7 ARGUMENTS_6, g
#define ARGUMENTS_8 ARGUMENTS_7, h
#define ARGUMENTS_9 ARGUMENTS_8, i
#define ARGUMENTS_10 ARGUMENTS_9, j
#define ARGUMENTS_11 ARGUMENTS_10, k

/* ROW(function, its roles, how many it has) */
#define FUNCTIONS(ROW)                   \
  ROW(Allgather, "-N--n-c", 7)           \
  ROW(Allgatherv, "-N--vv-c", 8)         \
  ROW(Allreduce, "--n--c", 6)            \
  ROW(Alltoall, "-N--n-c", 7)            \
  ROW(Alltoallv, "-VV--vv-c", 9)         \
  ROW(Bcast, "-n--c", 5)                 \
  ROW(Exscan, "--n--c", 6)               \
  ROW(Gather, "-N--m-rc", 8)             \
  ROW(Gatherv, "-N--ww-rc", 9)           \
  ROW(Reduce, "--n---c", 7)              \
  ROW(Reduce_scatter, "--v--c", 6)       \
  ROW(Reduce_scatter_block, "--n--c", 6) \
  ROW(Scan, "--n--c", 6)                 \
  ROW(Scatter, "-m-bR-rc", 8)            \
  ROW(Scatterv, "-ww-bR-rc", 9)

#define NONBLOCKING_FUNCTIONS(ROW)         \
  ROW(Iallgather, "-N--n-cq", 8)           \
  ROW(Iallgatherv, "-N--vv-cq", 9)         \
  ROW(Iallreduce, "--n--cq", 7)            \
  ROW(Ialltoall, "-N--n-cq", 8)            \
  ROW(Ialltoallv, "-VV--vv-cq", 10)        \
  ROW(Ibcast, "-n--cq", 6)                 \
  ROW(Iexscan, "--n--cq", 7)               \
  ROW(Igather, "-N--m-rcq", 9)             \
  ROW(Igatherv, "-N--ww-rcq", 10)          \
  ROW(Ireduce, "--n---cq", 8)              \
  ROW(Ireduce_scatter, "--v--cq", 7)       \
  ROW(Ireduce_scatter_block, "--n--cq", 7) \
  ROW(Iscan, "--n--cq", 7)                 \
  ROW(Iscatter, "-m-bR-rcq", 9)            \
  ROW(Iscatterv, "-ww-bR-rcq", 10)

#define PERSISTENT_FUNCTIONS(ROW)               \
  ROW(Allgather_init, "-N--n-c-q", 9)           \
  ROW(Allgatherv_init, "-N--vv-c-q", 10)        \
  ROW(Allreduce_init, "--n--c-q", 8)            \
  ROW(Alltoall_init, "-N--n-c-q", 9)            \
  ROW(Alltoallv_init, "-VV--vv-c-q", 11)        \
  ROW(Bcast_init, "-n--c-q", 7)                 \
  ROW(Exscan_init, "--n--c-q", 8)               \
  ROW(Gather_init, "-N--m-rc-q", 10)            \
  ROW(Gatherv_init, "-N--ww-rc-q", 11)          \
  ROW(Reduce_init, "--n---c-q", 9)              \
  ROW(Reduce_scatter_init, "--v--c-q", 8)       \
  ROW(Reduce_scatter_block_init, "--n--c-q", 8) \
  ROW(Scan_init, "--n--c-q", 8)                 \
  ROW(Scatter_init, "-m-bR-rc-q", 10)           \
  ROW(Scatterv_init, "-ww-bR-rc-q", 11)

#define DEFINE(name, roles, count)                                        \
  static int name##_c(PARAMETERS_##count) {                               \
    static struct Small small = {{"PMPI_" #name, NULL}, roles};           \
    void* const caller = __builtin_return_address(0);                     \
    return run((struct Call){&small, caller, {ARGUMENTS_##count}, NULL}); \
  }
FUNCTIONS(DEFINE)
NONBLOCKING_FUNCTIONS(DEFINE)
PERSISTENT_FUNCTIONS(DEFINE)

#define TABLE_ROW(name, roles, count) {"PMPI_" #name "_c", (void*)&name##_c},

void* sluice_large_counts(const char* name) {
  static const struct {
    const char* name;
    void* function;
  } all[] = {FUNCTIONS(TABLE_ROW) NONBLOCKING_FUNCTIONS(TABLE_ROW) PERSISTENT_FUNCTIONS(TABLE_ROW)};
  for (unsigned i = 0; i < sizeof all / sizeof *all; ++i) {
    if (strcmp(all[i].name, name) == 0) return all[i].function;
  }
  return NULL;
}
