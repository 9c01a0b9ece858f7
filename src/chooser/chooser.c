/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What happens at a process's first call: finds out which MPI library it has, opens the module for
 * it and fills the table of jumps. What cannot work is said, and left to MPI; nothing here ends the
 * process. Nothing is locked, since whoever loads a library may be in a loader's lock: threads that
 * come here at once all do the same and write the same.
 *
 * Calls of a process may reach several libraries: plugins that were opened with RTLD_LOCAL have an
 * MPI library each, or a stand-in for one. What initialises MPI is looked up at each call, if not
 * all reach the same, so a second library is noticed then. From then on each call is looked up, and
 * goes to its caller's library.
 */
#define _GNU_SOURCE /* dladdr1 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sluice/sluice.h"
#include "src/chooser/chooser.h"
#include "src/chooser/encryption.h"
#include "src/chooser/find_mpi.h"
#include "src/chooser/jumps.h"
#include "src/chooser/large_counts.h"
#include "src/chooser/module.h"

const char* sluice_version(void) { return SLUICE_VERSION; }

void sluice_print(const char* format, ...) {
  char line[1000];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length <= 0) return;
  const size_t size = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
  line[size - 1] = '\n';
  if (write(STDERR_FILENO, line, size) < 0) return; /* nowhere left to report to */
}

/* The names in the table's order, as programs and libraries know them. */
#define MPI_ROW(name) "PMPI_" #name,
#define OWN_ROW(name) #name,
static const char* const names[] = {SLUICE_MPI_FUNCTIONS(MPI_ROW) SLUICE_OWN_FUNCTIONS(OWN_ROW)};

static int is_own(unsigned index) { return *names[index] != 'P'; }

/* Which libraries calls have reached: a bit for each SluiceReach. */
static unsigned reached_so_far;
enum { one_mpi = 1 << sluice_reaches_mpi, several = one_mpi | 1 << sluice_reaches_another };

static unsigned load_reached(void) { return __atomic_load_n(&reached_so_far, __ATOMIC_SEQ_CST); }

int sluice_has_one_mpi(void) { return load_reached() == one_mpi; }

static void reset_jump(unsigned index) {
  __atomic_store_n(&sluice_jumps[index], sluice_first_jumps[index], __ATOMIC_SEQ_CST);
}

/* (If there are several meanwhile, this thread sees it, or the one that resets all comes later.) */
static void write_jump(unsigned index, void* function) {
  void* first = sluice_first_jumps[index];
  __atomic_compare_exchange_n(&sluice_jumps[index], &first, function, 0, __ATOMIC_SEQ_CST,
                              __ATOMIC_RELAXED);
  if (load_reached() == several) reset_jump(index);
}

static int is_quiet(void) {
  const char* const level = getenv("SLUICE_LOG");
  return level && strcmp(level, "error") == 0;
}

/* (Only the library that Sluice serves is known, if the stand-in came first.) */
static void tell_several(const struct SluiceReached* reached) {
  char demand[300];
  const char* const other = reached->library ? reached->library : "theirs";
  if (reached->is_second_mpi && sluice_demands_encryption(demand, sizeof demand)) {
    sluice_print(
        "sluice: error: this process has several MPI libraries: Sluice serves who uses %s; %s "
        "cannot be had for calls of %s, which fail\n",
        sluice_mpi_file(), demand, other);
  } else if (!is_quiet()) {
    sluice_print(
        "sluice: warning: this process has several MPI libraries: Sluice serves who uses %s, and "
        "leaves calls of others to %s\n",
        sluice_mpi_file(), other);
  }
}

static void note(const struct SluiceReached* reached) {
  if (reached->reach == sluice_reaches_nothing) return;
  const unsigned bit = 1U << reached->reach;
  const unsigned before = __atomic_fetch_or(&reached_so_far, bit, __ATOMIC_SEQ_CST);
  if (before == several || (before | bit) != several) return;
  for (unsigned i = 0; i < sluice_jump_count; ++i) reset_jump(i);
  tell_several(reached);
}

/* Whether there is room for the path. */
static int write_path(char path[PATH_MAX], const char* format, const char* folder,
                      const char* file) {
  const int length = snprintf(path, PATH_MAX, format, folder, file);
  return length > 0 && length < PATH_MAX;
}

/* The path of a module: beside this library's file, or, where it is installed, in the folder sluice
 * there. The folder is that of the file's load, whatever the program has changed to since, and
 * links to the file are followed. Nothing if there is no such file. */
static int find_module(const char* file, char path[PATH_MAX]) {
  static const char here;
  char folder[PATH_MAX], loaded[PATH_MAX], real[PATH_MAX];
  struct link_map* map = NULL;
  Dl_info about;
  if (!dladdr1(&here, &about, (void**)&map, RTLD_DL_LINKMAP) || !map) return 0;
  if (dlinfo(map, RTLD_DI_ORIGIN, folder) != 0) return 0;
  const char* const slash = strrchr(map->l_name, '/');
  if (!write_path(loaded, "%s/%s", folder, slash ? slash + 1 : map->l_name)) return 0;
  if (!realpath(loaded, real)) return 0;
  *strrchr(real, '/') = '\0';
  if (write_path(path, "%s/sluice/%s", real, file) && access(path, F_OK) == 0) return 1;
  return write_path(path, "%s/%s", real, file) && access(path, F_OK) == 0;
}

/* Why the file is no library, or not all of one, as after a copy to a full disk: the linker would
 * wait for a pipe, and end the program by SIGBUS where it maps what is missing. Null if it may be
 * one: the linker sees the rest. (The table of sections comes last.) */
static const char* defect(const char* path) {
  ElfW(Ehdr) head;
  struct stat about;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return strerror(errno);
  const int is_file = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  const ssize_t got = is_file ? read(fd, &head, sizeof head) : 0;
  close(fd);
  if (!is_file) return "it is no regular file";
  if (got != (ssize_t)sizeof head) return "its end is missing";
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return NULL;
  const uint64_t end = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
  return end > (uint64_t)about.st_size ? "its end is missing" : NULL;
}

/* What sluice.h declares, where Sluice leaves MPI alone. (The error is a class of every MPI.) */
static int refuse(void) { return 16; }
static const char* last_algorithm(void) { return "mpi"; }

static void* own_function(unsigned index) {
  return index == sluice_index_sluice_last_algorithm ? (void*)&last_algorithm : (void*)&refuse;
}

static void* function_of_mpi(const char* name) {
  void* const function = sluice_look_up.function(name);
  return function ? function : sluice_look_up.function(name + 1);
}

/* What must not go in clear does not go at all. */
static void* const* functions_of_mpi(int are_refused) {
  static void* functions[sluice_jump_count];
  for (unsigned i = 0; i < sluice_jump_count; ++i) {
    void* const mpis = are_refused ? (void*)&refuse : function_of_mpi(names[i]);
    functions[i] = is_own(i) ? own_function(i) : mpis;
  }
  return functions;
}

/* Says so, once, if there is a level. Returns the functions that do all calls. */
__attribute__((format(printf, 2, 3))) static void* const* leave_alone(const char* level,
                                                                      const char* format, ...) {
  static int told;
  char why[800], demand[300];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  const int are_refused = sluice_demands_encryption(demand, sizeof demand);
  if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) return functions_of_mpi(are_refused);
  if (are_refused) {
    sluice_print("sluice: error: %s cannot be had, and calls of MPI fail: %s\n", demand, why);
  } else if (level) {
    sluice_print("sluice: %s: Sluice leaves all calls to MPI: %s\n", level, why);
  }
  return functions_of_mpi(are_refused);
}

/* The functions of a module. */
static void* const* open_module(const char* file, const char* mpi) {
  char path[PATH_MAX];
  const char* missing = NULL;
  if (!find_module(file, path))
    return leave_alone("error", "%s, for %s, is not beside libsluice.so", file, mpi);
  const char* const why = defect(path);
  if (why) return leave_alone("error", "%s cannot be loaded: %s", path, why);
  void* const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  SluiceStart* const start = opened ? (SluiceStart*)dlsym(opened, "sluice_module") : NULL;
  if (!start) return leave_alone("error", "%s cannot be loaded: %s", path, dlerror());
  const struct SluiceModule* const module = start(&sluice_look_up, &missing);
  if (module->version != SLUICE_MODULE_VERSION || module->count != sluice_jump_count ||
      strcmp(module->release, SLUICE_VERSION) != 0) {
    return leave_alone("error", "%s is of Sluice %s, and libsluice.so of %s", path, module->release,
                       SLUICE_VERSION);
  }
  if (strcmp(module->file, file) != 0) {
    return leave_alone("error", "%s is %s by another name, which does not serve %s", path,
                       module->file, mpi);
  }
  if (missing) return leave_alone("error", "%s lacks %s", mpi, missing);
  return module->functions;
}

/* Those that do the calls to the process's MPI. */
static void* const* choose_functions(void) {
  static const char* const files[] = {[sluice_mpi_open] = "libsluice-openmpi.so",
                                      [sluice_mpi_mpich] = "libsluice-mpich.so",
                                      [sluice_mpi_5] = "libsluice-mpi5.so"};
  char mpi[200];
  const enum SluiceMpi kind = sluice_find_mpi(mpi, sizeof mpi);
  if (kind != sluice_mpi_unknown) return open_module(files[kind], mpi);
  return leave_alone(
      is_quiet() ? NULL : "warning",
      "this MPI library is neither Open MPI nor of MPICH's kin, nor has it MPI 5's ABI: %s",
      *mpi ? mpi : "it does not tell its name");
}

static int is_first_call(unsigned index) {
  return index == sluice_index_Init || index == sluice_index_Init_thread ||
         index == sluice_index_Comm_create_from_group;
}

/* is_for_all: whether whoever calls MPI reaches this library. */
static void* const* fill(int is_for_all) {
  static void* const* known;
  void* const* functions = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
  if (functions) return functions;
  functions = choose_functions();
  __atomic_store_n(&known, functions, __ATOMIC_RELEASE);
  for (unsigned i = 0; i < sluice_jump_count; ++i) {
    if (functions[i] && (is_for_all || !is_first_call(i))) write_jump(i, functions[i]);
  }
  return functions;
}

static int is_encryption_demanded(void) {
  static int known; /* 0: not yet; 1: no; 2: yes */
  char demand[300];
  if (!__atomic_load_n(&known, __ATOMIC_RELAXED)) {
    __atomic_store_n(&known, 1 + sluice_demands_encryption(demand, sizeof demand),
                     __ATOMIC_RELAXED);
  }
  return __atomic_load_n(&known, __ATOMIC_RELAXED) == 2;
}

/* Of another library, which is left alone, unless its calls would go in clear. (A stand-in sends
 * nothing.) */
static void* find_anothers(unsigned index, const struct SluiceReached* reached) {
  if (is_own(index)) return NULL;
  if (reached->is_second_mpi && is_encryption_demanded()) return (void*)&refuse;
  if (!reached->function) return sluice_large_counts(names[index]);
  if (reached->is_for_all) write_jump(index, reached->function);
  return reached->function;
}

static void* refuse_missing(unsigned index, int is_optional) {
  static int told[sluice_jump_count];
  if (!is_optional && !__atomic_exchange_n(&told[index], 1, __ATOMIC_RELAXED)) {
    sluice_print("sluice: error: no MPI library has %s: the call fails\n", names[index] + 1);
  }
  return (void*)&refuse;
}

void* sluice_choose(unsigned index, void* caller) {
  const int saved_errno = errno;
  const struct SluiceReached reached =
      sluice_reach(is_own(index) ? "PMPI_Init" : names[index], caller);
  void* function = NULL;
  note(&reached);
  if (reached.reach == sluice_reaches_mpi) function = fill(reached.is_for_all)[index];
  if (reached.reach == sluice_reaches_another) function = find_anothers(index, &reached);
  if (!function && is_own(index)) function = own_function(index);
  if (!function) function = refuse_missing(index, reached.is_optional);
  errno = saved_errno;
  return function;
}

void* sluice_function(const char* name, void* caller) {
  const struct SluiceReached reached = sluice_reach(name, caller);
  return reached.reach == sluice_reaches_mpi ? function_of_mpi(name) : reached.function;
}
