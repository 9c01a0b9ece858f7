/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interface between the library and the module that knows the machine's topology: a table of C
 * functions, found by symbol name. The library itself needs only libc. The code that needs hwloc is
 * in a module of its own (hwloc.c), loaded on demand and optional.
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
  uint64_t node;  /* their NUMA node: the lowest number in it, plus one; 0: several, or none */
};

struct SluiceTopology {
  int version; /* SLUICE_TOPOLOGY_VERSION */
  /* For a set of processors (bits by kernel number): returns 0 and sets *domains, or returns -1
   * if the topology cannot be read. The result is equal in all processes of a host. The first
   * call takes milliseconds. Not thread-safe. */
  int (*find)(const uint64_t* processors, size_t words, struct SluiceDomains* domains);
  /* Counts of the whole machine. */
  int (*count)(unsigned* caches, unsigned* nodes);
};

/* The module's entry, SLUICE_TOPOLOGY_SYMBOL. */
typedef const struct SluiceTopology* SluiceTopologyEntry(void);

#ifdef __cplusplus
}
#endif
