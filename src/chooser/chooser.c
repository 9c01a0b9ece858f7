/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What happens at a process's first call: finds out which MPI library it has, opens the module for
 * it and fills the table of jumps. Nothing is locked, since whoever loads a library may be in a
 * loader's lock: threads that come here at once all do the same and write the same.
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
#include "src/chooser/find_mpi.h"
#include "src/chooser/jumps.h"
#include "src/chooser/module.h"

const char* sluice_version(void) { return SLUICE_VERSION; }

/* As src/base/log.h: a line, by one system call. */
__attribute__((format(printf, 1, 2))) static void print(const char* format, ...) {
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

__attribute__((noreturn)) static void end(void) { _exit(EXIT_FAILURE); }

/* The names in the table's order, as programs and libraries know them. */
#define MPI_ROW(name) "PMPI_" #name,
#define OWN_ROW(name) #name,
static const char* const names[] = {SLUICE_MPI_FUNCTIONS(MPI_ROW) SLUICE_OWN_FUNCTIONS(OWN_ROW)};

static void write_jump(unsigned index, void* function) {
  __atomic_store_n(&sluice_jumps[index], function, __ATOMIC_RELEASE);
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

static const struct SluiceModule* open_module(const char* file, const char* mpi) {
  char path[PATH_MAX];
  if (!find_module(file, path)) {
    print("sluice: error: %s, for %s, is not beside libsluice.so\n", file, mpi);
    end();
  }
  const char* const why = defect(path);
  if (why) {
    print("sluice: error: %s cannot be loaded: %s\n", path, why);
    end();
  }
  void* const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  SluiceStart* const start = opened ? (SluiceStart*)dlsym(opened, "sluice_module") : NULL;
  if (!start) {
    print("sluice: error: %s cannot be loaded: %s\n", path, dlerror());
    end();
  }
  const struct SluiceModule* const module = start(&sluice_look_up);
  if (module->version != SLUICE_MODULE_VERSION || module->count != sluice_jump_count ||
      strcmp(module->release, SLUICE_VERSION) != 0) {
    print("sluice: error: %s is of Sluice %s, and libsluice.so of %s\n", path, module->release,
          SLUICE_VERSION);
    end();
  }
  if (strcmp(module->file, file) != 0) {
    print("sluice: error: %s is %s by another name, which does not serve %s\n", path, module->file,
          mpi);
    end();
  }
  return module;
}

/* What sluice.h declares, where Sluice leaves MPI alone. (The error is a class of every MPI.) */
static int refuse(void) { return 16; }
static const char* last_algorithm(void) { return "mpi"; }

static void* function_of_mpi(const char* name) {
  if (strcmp(name, "sluice_last_algorithm") == 0) return (void*)&last_algorithm;
  if (strncmp(name, "sluice_", 7) == 0) return (void*)&refuse;
  void* const function = sluice_look_up.function(name);
  return function ? function : sluice_look_up.function(name + 1);
}

static void* leave_alone(const char* mpi, unsigned wanted) {
  static int told;
  const char* const level = getenv("SLUICE_LOG");
  if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED) && !(level && strcmp(level, "error") == 0)) {
    print(
        "sluice: warning: Sluice leaves all calls to MPI: this MPI library is neither Open MPI "
        "nor of MPICH's kin, nor has it MPI 5's ABI: %s\n",
        *mpi ? mpi : "it does not tell its name");
  }
  void* found = NULL;
  for (unsigned i = 0; i < sluice_jump_count; ++i) {
    void* const function = function_of_mpi(names[i]);
    if (function) write_jump(i, function);
    if (i == wanted) found = function;
  }
  return found;
}

/* Returns the function with the index `wanted`; null if no MPI library has it. */
static void* fill(unsigned wanted) {
  static const char* const files[] = {[sluice_mpi_open] = "libsluice-openmpi.so",
                                      [sluice_mpi_mpich] = "libsluice-mpich.so",
                                      [sluice_mpi_5] = "libsluice-mpi5.so"};
  char mpi[200];
  const enum SluiceMpi kind = sluice_find_mpi(mpi, sizeof mpi);
  if (kind == sluice_mpi_none) return NULL;
  if (kind == sluice_mpi_unknown) return leave_alone(mpi, wanted);
  const struct SluiceModule* const module = open_module(files[kind], mpi);
  for (unsigned i = 0; i < sluice_jump_count; ++i) write_jump(i, module->functions[i]);
  return module->functions[wanted];
}

void* sluice_choose(unsigned index) {
  const int saved_errno = errno;
  void* const function = fill(index);
  if (!function) {
    print("sluice: error: no MPI library has %s\n", names[index]);
    end();
  }
  errno = saved_errno;
  return function;
}
