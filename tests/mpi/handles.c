/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handles WORD...: looks symbols up as its words say, and prints which library each is of.
 *   local:FILE global:FILE  opens a library, whose handle is used from then on
 *   apart:FILE              the same, in a namespace of its own (dlmopen)
 *   deep:FILE               the same, where it looks into what it is linked with first
 *   close                   closes it
 *   NAME                    dlsym by the handle
 *   NAME@                   dlvsym, of version V1
 *   next:NAME default:NAME  dlsym by RTLD_NEXT, RTLD_DEFAULT
 *   call:NAME               calls it, without arguments, and prints the result
 *   linked                  calls MPI_Barrier by name, if the program is linked with one
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#pragma weak MPI_Barrier
int MPI_Barrier(void);

static void show(const char* word, void* found) {
  Dl_info about;
  const int known = found && dladdr(found, &about);
  printf("%s %s\n", word, known ? strrchr(about.dli_fname, '/') + 1 : "nothing");
}

static void* looked_up(void* handle, const char* word) {
  char name[100];
  if (strncmp(word, "next:", 5) == 0) return dlsym(RTLD_NEXT, word + 5);
  if (strncmp(word, "default:", 8) == 0) return dlsym(RTLD_DEFAULT, word + 8);
  snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "@"), word);
  return strchr(word, '@') ? dlvsym(handle, name, "V1") : dlsym(handle, name);
}

static void* opened(const char* file, int scope, Lmid_t space) {
  void* const handle = dlmopen(space, file, RTLD_NOW | scope);
  if (!handle) printf("%s\n", dlerror());
  return handle;
}

int main(int argc, char** argv) {
  void* handle = NULL;
  for (int i = 1; i < argc; ++i) {
    const char* const word = argv[i];
    if (strncmp(word, "local:", 6) == 0) {
      handle = opened(word + 6, RTLD_LOCAL, LM_ID_BASE);
    } else if (strncmp(word, "global:", 7) == 0) {
      handle = opened(word + 7, RTLD_GLOBAL, LM_ID_BASE);
    } else if (strncmp(word, "deep:", 5) == 0) {
      handle = opened(word + 5, RTLD_LOCAL | RTLD_DEEPBIND, LM_ID_BASE);
    } else if (strncmp(word, "apart:", 6) == 0) {
      handle = opened(word + 6, RTLD_LOCAL, LM_ID_NEWLM);
    } else if (strcmp(word, "close") == 0) {
      dlclose(handle);
    } else if (strncmp(word, "call:", 5) == 0) {
      void* const found = dlsym(handle, word + 5);
      printf("%s %d\n", word, found ? ((int (*)(void))found)() : -1);
    } else if (strcmp(word, "linked") == 0) {
      printf("%s %d\n", word, MPI_Barrier());
    } else {
      show(word, looked_up(handle, word));
    }
  }
  return 0;
}
