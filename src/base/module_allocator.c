/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Part of each module that is linked with a library. Both look names up in themselves first, then
 * in libc (module.h). Without these functions they would use libc's allocator where the program has
 * another (jemalloc, a sanitizer's), and would give it what strdup and others of libc have taken
 * from the program's. These call the program's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

/* The function that the program, and so libc, calls by that name. */
static void* find(const char* name) {
  void* const program = dlmopen(LM_ID_BASE, NULL, RTLD_LAZY);
  void* const found = dlsym(program, name);
  dlclose(program);
  return found;
}

#define FORWARD(type, name, parameters, arguments)                          \
  __attribute__((visibility("default"))) type name parameters {             \
    static __typeof__(&name) known;                                         \
    __typeof__(&name) function = __atomic_load_n(&known, __ATOMIC_RELAXED); \
    if (!function) {                                                        \
      function = (__typeof__(function))find(#name);                         \
      __atomic_store_n(&known, function, __ATOMIC_RELAXED);                 \
    }                                                                       \
    return function arguments;                                              \
  }

FORWARD(void*, malloc, (size_t size), (size))
FORWARD(void*, calloc, (size_t count, size_t size), (count, size))
FORWARD(void*, realloc, (void* memory, size_t size), (memory, size))
FORWARD(void, free, (void* memory), (memory))
FORWARD(int, posix_memalign, (void** made, size_t by, size_t size), (made, by, size))
FORWARD(void*, aligned_alloc, (size_t by, size_t size), (by, size))
FORWARD(void*, memalign, (size_t by, size_t size), (by, size))
FORWARD(size_t, malloc_usable_size, (void* memory), (memory))
