// SPDX-License-Identifier: BSD-3-Clause
//
// Preloaded, makes hosts look like virtual machines that were resumed from one snapshot: their
// network namespaces have the same number, and, with CLONE_NAME, the hosts have that name.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int stat(const char* path, struct stat* about) {
  int (*const real)(const char*, struct stat*) = dlsym(RTLD_NEXT, "stat");
  const int status = real(path, about);
  if (strcmp(path, "/proc/self/ns/net") == 0) about->st_dev = about->st_ino = 1;
  return status;
}

int gethostname(char* name, size_t size) {
  int (*const real)(char*, size_t) = dlsym(RTLD_NEXT, "gethostname");
  const char* const clone = getenv("CLONE_NAME");
  if (clone == NULL) return real(name, size);
  strncpy(name, clone, size);
  return 0;
}
