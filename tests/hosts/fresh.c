// SPDX-License-Identifier: BSD-3-Clause
//
// Preloaded, makes interfaces look like ones that have just been made: up, but the kernel has not
// noticed yet that they carry packets (IFF_RUNNING).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stddef.h>

int getifaddrs(struct ifaddrs** list) {
  int (*const real)(struct ifaddrs**) = dlsym(RTLD_NEXT, "getifaddrs");
  const int status = real(list);
  if (status != 0) return status;
  for (struct ifaddrs* each = *list; each != NULL; each = each->ifa_next) {
    if ((each->ifa_flags & IFF_LOOPBACK) == 0) each->ifa_flags &= ~(unsigned)IFF_RUNNING;
  }
  return 0;
}
