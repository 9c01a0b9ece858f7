/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libsluice-hwloc.so: the topology module that uses hwloc (Broquedis et al., hwloc: a generic
 * framework for managing hardware affinities in HPC applications, PDP 2010).
 */
#include <dlfcn.h>
#include <hwloc.h>

#include "src/host/module.h"

static hwloc_topology_t machine;

/* Includes processors that this process may not use: other ranks may, and all must number alike. */
static int load(void) {
  hwloc_topology_t made;
  if (machine) return 0;
  if (hwloc_topology_init(&made) != 0) return -1;
  hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(made) != 0) {
    hwloc_topology_destroy(made);
    return -1;
  }
  machine = made;
  return 0;
}

static uint64_t number(int first) { return first < 0 ? 0 : (uint64_t)first + 1; }

/* The outermost data cache that contains the object; NULL if there is none. */
static hwloc_obj_t last_cache(hwloc_obj_t object) {
  hwloc_obj_t found = NULL;
  for (; object; object = object->parent) {
    if (hwloc_obj_type_is_dcache(object->type)) found = object;
  }
  return found;
}

static int find(const uint64_t* processors, size_t words, struct SluiceDomains* domains) {
  hwloc_bitmap_t set;
  hwloc_obj_t covering;
  size_t bit;
  if (load() != 0) return -1;
  set = hwloc_bitmap_alloc();
  if (!set) return -1;
  for (bit = 0; bit < words * 64; ++bit) {
    if (processors[bit / 64] >> (bit % 64) & 1) hwloc_bitmap_set(set, (unsigned)bit);
  }
  covering = hwloc_get_obj_covering_cpuset(machine, set);
  hwloc_bitmap_free(set);
  if (!covering) return -1;
  domains->cache = domains->node = 0;
  if (last_cache(covering))
    domains->cache = number(hwloc_bitmap_first(last_cache(covering)->cpuset));
  if (hwloc_bitmap_weight(covering->nodeset) == 1) {
    domains->node = number(hwloc_bitmap_first(covering->nodeset));
  }
  return 0;
}

static int count(unsigned* caches, unsigned* nodes) {
  int depth, found;
  if (load() != 0) return -1;
  *caches = 0;
  *nodes = (unsigned)hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE);
  for (depth = 0; depth < hwloc_topology_get_depth(machine); ++depth) {
    if (!hwloc_obj_type_is_dcache(hwloc_get_depth_type(machine, depth))) continue;
    found = (int)hwloc_get_nbobjs_by_depth(machine, depth);
    *caches = (unsigned)found;
    break;
  }
  return 0;
}

/* In place of libc's: hwloc's plug-ins stay away. They are not linked with hwloc, so they would
 * take its functions from a program that has functions of such names (src/base/module.h). */
__attribute__((visibility("default"))) void* dlopen(const char* file, int flags) {
  (void)file, (void)flags;
  return NULL;
}

static const struct SluiceTopology topology = {SLUICE_TOPOLOGY_VERSION, find, count};

__attribute__((visibility("default"))) const struct SluiceTopology* sluice_topology(void) {
  return &topology;
}
