/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "src/chooser/find_mpi.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Looked for at each call until there is one: the program may load it late. */
static void* hidden_library(void) {
  static void* found;
  void* library = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
  struct Names names = {{NULL}, 0};
  if (library) return library;
  dl_iterate_phdr(collect_name, &names);
  for (unsigned i = 0; i < names.count; ++i) {
    void* const opened = library ? NULL : dlopen(names.list[i], RTLD_LAZY | RTLD_NOLOAD);
    if (opened && dlsym(opened, "PMPI_Init")) library = opened;
    free(names.list[i]);
  }
  __atomic_store_n(&found, library, __ATOMIC_RELEASE);
  return library;
}

/* A handle of the library that this address is in, which then stays loaded; null for the program.
 */
static void* library_of(void* address) {
  struct link_map* map = NULL;
  Dl_info about;
  if (!dladdr1(address, &about, (void**)&map, RTLD_DL_LINKMAP) || !map || !*map->l_name)
    return NULL;
  return dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
}

/* The one whose MPI_Init comes next, unless that is a second copy of Sluice. (dlsym takes "next"
 * from where it is called, so that call must not be the last: the compiler would make a jump of
 * it.) */
static void* mpi_library(void) {
  static void* found;
  void* library = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
  if (library) return library;
  void* const init = dlsym(RTLD_NEXT, "PMPI_Init");
  library = init ? library_of(init) : NULL;
  if (!init || (library && dlsym(library, "sluice_version"))) library = hidden_library();
  __atomic_store_n(&found, library, __ATOMIC_RELEASE);
  return library;
}

static int is_of_another_mpi(void* symbol, void* mpi) {
  void* const library = library_of(symbol);
  void* const init = library ? dlsym(library, "PMPI_Init") : NULL;
  if (library) dlclose(library);
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

static void* find_function(const char* name) { return of_one_mpi(name, dlsym(RTLD_NEXT, name)); }

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
  text[0] = '\0';
  if (!find_function("PMPI_Init")) return sluice_mpi_none;
  get_version(text, room);
  if (has_standard_abi()) return sluice_mpi_5;
  if (find_data("ompi_mpi_comm_world")) return sluice_mpi_open;
  return is_kin_of_mpich(text) ? sluice_mpi_mpich : sluice_mpi_unknown;
}
