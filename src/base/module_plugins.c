/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Part of a module whose library has plug-ins (OpenSSL's providers, libibverbs' drivers). These are
 * linked with the library, and take its functions from it, even if the program has functions of
 * such names (module.h). They do not where the program has an allocator of its own, because they
 * would use libc's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

static int is_of_libc(const char* name) {
  void* const program = dlmopen(LM_ID_BASE, NULL, RTLD_LAZY);
  void* const function = dlsym(program, name);
  Dl_info about, libc;
  dlclose(program);
  return dladdr(function, &about) && dladdr((const void*)&getenv, &libc) &&
         about.dli_fbase == libc.dli_fbase;
}

/* In place of libc's. */
__attribute__((visibility("default"))) void* dlopen(const char* file, int flags) {
  const int apart = file && is_of_libc("malloc") ? RTLD_DEEPBIND : 0;
  return dlmopen(LM_ID_BASE, file, flags | apart);
}
