/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "src/chooser/find_mpi.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/chooser/large_counts.h"
#include "src/chooser/objects.h"

/* A handle of the process's MPI library, which then stays loaded; and of one that all could see
 * before any was known. (Open MPI lets all see it in MPI_Init.) */
static void *process_mpi, *global_mpi;

static void* mpi_library(void) { return __atomic_load_n(&process_mpi, __ATOMIC_ACQUIRE); }

static int is_sluices(void* symbol) {
  const struct link_map* const object = sluice_object_of(symbol);
  void* const version = object && !sluice_is_program(object)
                            ? sluice_find_in(object->l_name, "sluice_version")
                            : NULL;
  return version && sluice_object_of(version) == object;
}

/* What comes after this library in the order of look-up. (dlsym takes "next" from where it is
 * called, so that call must not be the last: the compiler would make a jump of it.) */
static void* find_next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  return found && !is_sluices(found) ? found : NULL;
}

/* Whether this MPI_X is of a tool, which calls PMPI_X: it names that, or comes before Sluice. */
static int is_of_tool(void* symbol, const char* name) {
  char called[64] = "P";
  strncat(called, name, sizeof called - 2);
  return dlsym(RTLD_DEFAULT, name) == symbol ||
         sluice_reference(sluice_object_of(symbol), called) != sluice_refers_not;
}

static int is_of_mpi(void* symbol, const char* name) {
  return !is_sluices(symbol) && (*name == 'P' || !is_of_tool(symbol, name));
}

/* What an object or the libraries that it is linked with have by this name. (A look-up by the
 * program's handle would find what was preloaded.) */
static void* find_below(const struct link_map* object, const char* name) {
  if (!object) return NULL;
  if (!sluice_is_program(object)) {
    void* const found = sluice_find_in(object->l_name, name);
    if (!found || is_of_mpi(found, name)) return found;
  }
  return sluice_find_in_needed(object, name, is_of_mpi);
}

/* Names of libraries that may be MPI's. */
struct Names {
  char* list[16];
  unsigned count;
};

static int collect_name(struct dl_phdr_info* object, size_t size, void* to) {
  struct Names* const names = to;
  const char* const slash = strrchr(object->dlpi_name, '/');
  const char* const base = slash ? slash + 1 : object->dlpi_name;
  (void)size;
  if (strncmp(base, "libmpi", 6) != 0 || names->count == sizeof names->list / sizeof *names->list) {
    return 0;
  }
  names->list[names->count] = strdup(object->dlpi_name);
  if (names->list[names->count]) ++names->count;
  return 0;
}

/* PMPI_Init of a library that only those see who have loaded it; not this one. */
static void* find_hidden(const void* but) {
  struct Names names = {{NULL}, 0};
  void* found = NULL;
  dl_iterate_phdr(collect_name, &names);
  for (unsigned i = 0; i < names.count; ++i) {
    if (!found) found = sluice_find_in(names.list[i], "PMPI_Init");
    if (found == but) found = NULL;
    free(names.list[i]);
  }
  return found;
}

/* The process's MPI, which is the library of this function unless it is known already. */
static void* decide(void* init, int is_global) {
  void* known = mpi_library();
  const struct link_map* const object = known ? NULL : sluice_object_of(init);
  void* const opened =
      object && !sluice_is_program(object) ? dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (!opened) return known;
  if (is_global) __atomic_store_n(&global_mpi, opened, __ATOMIC_RELEASE);
  const int is_first = __atomic_compare_exchange_n(&process_mpi, &known, opened, 0,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return is_first ? opened : known;
}

static int is_for_all(void) {
  void* const known = mpi_library();
  return known && known == __atomic_load_n(&global_mpi, __ATOMIC_ACQUIRE);
}

/* A function of a library without PMPI_Init: this MPI_X, or MPI_Init if it lacks that. */
static void* find_stand_in(const char* name, const struct link_map* caller) {
  void* found = find_next(name);
  if (found && is_of_mpi(found, name) &&
      !sluice_find_in(sluice_object_of(found)->l_name, "PMPI_Init"))
    return found;
  found = find_below(caller, name);
  return found || strcmp(name, "MPI_Init") == 0 ? found : find_stand_in("MPI_Init", caller);
}

/* symbol: of that library; name: PMPI_X. */
static struct SluiceReached reach_another(const char* name, void* symbol) {
  const char* const file = sluice_object_of(symbol)->l_name;
  const char* const mpi_name = name + 1;
  void* found = sluice_find_in(file, name);
  if (!found) found = sluice_find_in(file, mpi_name);
  return (struct SluiceReached){.reach = sluice_reaches_another,
                                .function = found,
                                .library = file,
                                .is_second_mpi = sluice_find_in(file, "PMPI_Init") != NULL,
                                .is_for_all = found && found == find_next(mpi_name)};
}

static struct SluiceReached reach_mpi(void) {
  return (struct SluiceReached){.reach = sluice_reaches_mpi, .is_for_all = is_for_all()};
}

/* A call of MPI_Init is not for a library that is initialised, if there is another. */
static void* find_uninitialized(const char* name, void* mpi) {
  if (!mpi || strncmp(name, "PMPI_Init", 9) != 0) return NULL;
  int (*const ask)(int*) = (int (*)(int*))dlsym(mpi, "PMPI_Initialized");
  int is_initialized = 0;
  if (ask) ask(&is_initialized);
  return is_initialized ? find_hidden(dlsym(mpi, "PMPI_Init")) : NULL;
}

struct SluiceReached sluice_reach(const char* name, void* caller) {
  if (is_for_all()) return reach_mpi();
  const struct link_map* const from = sluice_object_of(caller);
  void* const global = mpi_library() ? NULL : find_next("PMPI_Init");
  void* const init = global ? global : find_below(from, "PMPI_Init");
  void* const known = init ? decide(init, global != NULL) : mpi_library();
  if (init && dlsym(known, "PMPI_Init") == init) return reach_mpi();
  void* other = init ? init : find_stand_in(name + 1, from);
  if (!other) other = find_uninitialized(name, known);
  if (other) return reach_another(name, other);
  if (known || decide(find_hidden(NULL), 0)) return reach_mpi();
  const int is_optional = from && sluice_reference(from, name + 1) == sluice_refers_weakly;
  return (struct SluiceReached){.is_optional = is_optional};
}

const char* sluice_mpi_file(void) {
  struct link_map* map = NULL;
  return dlinfo(mpi_library(), RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

static int is_of_another_mpi(void* symbol, void* mpi) {
  const struct link_map* const object = sluice_object_of(symbol);
  void* const init =
      object && !sluice_is_program(object) ? sluice_find_in(object->l_name, "PMPI_Init") : NULL;
  return init && init != dlsym(mpi, "PMPI_Init");
}

/* What was found in the order of look-up, unless that is nothing or of a second MPI library, which
 * may have what the process's own lacks. */
static void* of_one_mpi(const char* name, void* found) {
  void* const mpi = mpi_library();
  void* const its = mpi ? dlsym(mpi, name) : NULL;
  if (!mpi || found == its) return found;
  return !found || is_of_another_mpi(found, mpi) ? its : found;
}

static void* find_function(const char* name) {
  void* const found = of_one_mpi(name, find_next(name));
  return found ? found : sluice_large_counts(name);
}

/* The global scope comes first: a program that is not position-independent has copies of MPI's
 * data, and these are the ones in use. */
static void* find_data(const char* name) { return of_one_mpi(name, dlsym(RTLD_DEFAULT, name)); }

const struct SluiceLookUp sluice_look_up = {find_function, find_data};

/* Some libraries write up to 8,192 characters, of several lines. */
static void get_version(char* text, unsigned room) {
  char mine[8192 + 1];
  int length = 0;
  int (*const get)(char*, int*) = (int (*)(char*, int*))find_function("PMPI_Get_library_version");
  text[0] = '\0';
  memset(mine, 0, sizeof mine);
  if (!get || get(mine, &length) != 0) return;
  mine[strcspn(mine, ",\n")] = '\0';
  snprintf(text, room, "%.*s", (int)room - 1, mine);
  for (; *text; ++text) {
    if (*text == '\t') *text = ' ';
  }
}

static int has_standard_abi(void) {
  int (*const get)(int*, int*) = (int (*)(int*, int*))find_function("MPI_Abi_get_version");
  int major = 0, minor = 0;
  return get && get(&major, &minor) == 0 && major >= 1;
}

static int is_kin_of_mpich(const char* version) {
  static const char* const names[] = {"MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPI", "Cray MPI"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
    if (strstr(version, names[i])) return 1;
  }
  return 0;
}

enum SluiceMpi sluice_find_mpi(char* text, unsigned room) {
  get_version(text, room);
  if (has_standard_abi()) return sluice_mpi_5;
  if (find_data("ompi_mpi_comm_world")) return sluice_mpi_open;
  return is_kin_of_mpich(text) ? sluice_mpi_mpich : sluice_mpi_unknown;
}
