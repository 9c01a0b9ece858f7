/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a module that knows the machine's topology offers to the library: a table of functions in C,
 * found by its name. The library needs nothing but libc; what needs hwloc is in a module of its own
 * (hwloc.c), opened when it is wanted, and missed by nobody where it is not there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SLUICE_TOPOLOGY_VERSION 1
#define SLUICE_TOPOLOGY_SYMBOL "sluice_topology"

#ifdef __cplusplus
extern "C" {
#endif

struct SluiceDomains {
  uint64_t cache; /* the last-level cache that all of the processors share, and */
  uint64_t node;  /* their NUMA node: the lowest number in it, and one; 0: more than one, or none */
};

struct SluiceTopology {
  int version; /* SLUICE_TOPOLOGY_VERSION */
  /* Of these processors, bits by the kernel's numbers: 0 and *domains, or -1 where nothing can be
   * learnt of the machine. What it says is equal in all processes of a host. Takes milliseconds the
   * first time. One thread at a time. */
  int (*find)(const uint64_t* processors, size_t words, struct SluiceDomains* domains);
  /* Of the whole machine. */
  int (*count)(unsigned* caches, unsigned* nodes);
};

/* A module's one symbol, SLUICE_TOPOLOGY_SYMBOL. */
typedef const struct SluiceTopology* SluiceTopologyEntry(void);

#ifdef __cplusplus
}
#endif
