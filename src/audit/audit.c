/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libsluice-audit.so, for programs that a preload does not reach:
 * - They take MPI's functions from the MPI library's own handle, which names one library, as
 * Julia's MPI.jl does, and Python by ctypes or cffi: dlsym(dlopen("libmpi.so", ...),
 * "MPI_Allreduce").
 * - Or they open libraries that are linked with MPI so that these look into what they are linked
 *   with first (RTLD_DEEPBIND), as Julia does.
 * The dynamic linker loads this module (LD_AUDIT, rtld-audit(7)), and lets it change what such a
 * look-up of MPI_X finds: libsluice.so's function of that name.
 *
 * libsluice.so is preloaded as ever; without it nothing changes. Never changed is PMPI_X, by which
 * tools reach MPI itself, nor what Sluice or the MPI library looks up. Only MPI libraries that
 * libsluice.so finds by itself are served (find_mpi.h), and nothing is changed while a process has
 * two libraries that define MPI: one may be a layer over the other (Mukautuva), and must get the
 * other's own functions.
 *
 * The linker loads the module into a namespace of its own. It needs no library, not even libc, so
 * there is no second libc, and it has no state but what is in this file. The linker calls it with
 * the loader's lock held, but without that when it binds a call late. It never blocks or allocates,
 * and knows no failure: what it cannot read stays as it is.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

/* (There is no libc for what a stack protector calls.) */
#define EXPORTED __attribute__((visibility("default"), no_stack_protector))
#define INTERNAL __attribute__((no_stack_protector)) static

/* What an object is to this module: the cookie that the linker keeps with it points to one of
 * these, or to something else. (glibc may give an auditor the cookies of another, if one of them is
 * not interested in a look-up.) */
static const char is_library, is_module, is_served_mpi, is_other_mpi;

/* Written with the lock held, read also without. */
static const struct link_map* sluice; /* libsluice.so; null: not loaded */
static unsigned mpi_count;            /* libraries that define MPI's functions */

INTERNAL void count_mpi(unsigned change) {
  __atomic_store_n(&mpi_count, mpi_count + change, __ATOMIC_RELAXED);
}

INTERNAL int equal(const char* one, const char* other) {
  for (; *one && *one == *other; ++one) ++other;
  return *one == *other;
}

INTERNAL int begins_with(const char* text, const char* start) {
  for (; *start; ++start) {
    if (*text++ != *start) return 0;
  }
  return 1;
}

/* The table that an entry of the object's dynamic section names; null if there is none. (The linker
 * makes addresses of offsets only where it can write the section.) */
INTERNAL const void* table(const struct link_map* map, ElfW(Sxword) tag) {
  for (const ElfW(Dyn)* each = map->l_ld; each && each->d_tag != DT_NULL; ++each) {
    const uintptr_t at = each->d_un.d_ptr;
    if (each->d_tag == tag) return (const void*)(at < map->l_addr ? map->l_addr + at : at);
  }
  return NULL;
}

/* The symbol's address if it has this name and the object defines it; else 0. */
INTERNAL uintptr_t defined(const struct link_map* map, uint32_t index, const char* name) {
  const ElfW(Sym)* const symbol = (const ElfW(Sym)*)table(map, DT_SYMTAB) + index;
  const char* const names = table(map, DT_STRTAB);
  const int has = symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0;
  return has && equal(names + symbol->st_name, name) ? map->l_addr + symbol->st_value : 0;
}

/* DT_GNU_HASH: four numbers, a Bloom filter in words, the first symbol of each bucket, and for each
 * symbol its hash, whose lowest bit ends the bucket. */
INTERNAL uintptr_t find_by_gnu_hash(const struct link_map* map, const uint32_t* head,
                                    const char* name) {
  const uint32_t buckets = head[0], first = head[1], words = head[2], shift = head[3];
  const uintptr_t* const filter = (const uintptr_t*)(head + 4);
  const uint32_t* const bucket = (const uint32_t*)(filter + words);
  const uint32_t* const hashes = bucket + buckets;
  const uint32_t bits = 8 * sizeof *filter;
  uint32_t hash = 5381;
  for (const char* c = name; *c; ++c) hash = hash * 33 + (unsigned char)*c;
  if (buckets == 0 || words == 0) return 0;
  const uintptr_t word = filter[hash / bits % words];
  if (!(word >> (hash % bits) & word >> ((hash >> shift) % bits) & 1)) return 0;
  uint32_t index = bucket[hash % buckets];
  for (; index >= first; ++index) {
    const uint32_t its = hashes[index - first];
    const uintptr_t found = (its | 1) == (hash | 1) ? defined(map, index, name) : 0;
    if (found || (its & 1)) return found;
  }
  return 0;
}

/* DT_HASH: two counts, the first symbol of each bucket, and for each symbol the next one. */
INTERNAL uintptr_t find_by_hash(const struct link_map* map, const uint32_t* head,
                                const char* name) {
  const uint32_t buckets = head[0];
  const uint32_t* const bucket = head + 2;
  const uint32_t* const next = bucket + buckets;
  uint32_t hash = 0;
  for (const char* c = name; *c; ++c) {
    hash = (hash << 4) + (unsigned char)*c;
    hash = (hash ^ (hash >> 28 << 4)) & 0x0fffffff;
  }
  if (buckets == 0) return 0;
  for (uint32_t index = bucket[hash % buckets]; index != STN_UNDEF; index = next[index]) {
    const uintptr_t found = defined(map, index, name);
    if (found) return found;
  }
  return 0;
}

/* The address of what an object defines by this name; 0 if it does not. */
INTERNAL uintptr_t find(const struct link_map* map, const char* name) {
  if (!table(map, DT_SYMTAB) || !table(map, DT_STRTAB)) return 0;
  const void* const gnu_hash = table(map, DT_GNU_HASH);
  if (gnu_hash) return find_by_gnu_hash(map, gnu_hash, name);
  const void* const hash = table(map, DT_HASH);
  return hash ? find_by_hash(map, hash, name) : 0;
}

INTERNAL const char* base_name(const char* path) {
  const char* name = path;
  for (; *path; ++path) {
    if (*path == '/') name = path + 1;
  }
  return name;
}

/* The newest version of the interface that this was written for is 2. */
EXPORTED unsigned la_version(unsigned offered) { return offered < 2 ? offered : 2; }

/* Of interest are look-ups that find an MPI library's function, from all objects but MPI's and
 * Sluice's own. (Of those by dlsym, others are told, too.) */
EXPORTED unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  if (space != LM_ID_BASE) return 0;
  if (find(map, "sluice_version")) {
    if (!sluice) __atomic_store_n(&sluice, map, __ATOMIC_RELEASE);
    *cookie = (uintptr_t)&is_library;
    return 0;
  }
  if (find(map, "sluice_module")) {
    *cookie = (uintptr_t)&is_module;
    return 0;
  }
  if (find(map, "PMPI_Init")) {
    const int served = begins_with(base_name(map->l_name), "libmpi");
    count_mpi(1);
    *cookie = (uintptr_t)(served ? &is_served_mpi : &is_other_mpi);
    return served ? LA_FLG_BINDTO : 0;
  }
  return LA_FLG_BINDFROM;
}

/* (libsluice.so cannot be unloaded.) */
EXPORTED unsigned la_objclose(uintptr_t* cookie) {
  const uintptr_t mark = *cookie;
  if (mark == (uintptr_t)&is_served_mpi || mark == (uintptr_t)&is_other_mpi) count_mpi(-1U);
  return 0;
}

/* (The flags say that calls need not be told: without them each would take a detour.) */
EXPORTED uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned index, uintptr_t* user,
                                uintptr_t* definer, unsigned* flags, const char* name) {
  const struct link_map* const library = __atomic_load_n(&sluice, __ATOMIC_ACQUIRE);
  const uintptr_t by = *user;
  (void)index;
  *flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
  if (*definer != (uintptr_t)&is_served_mpi || !begins_with(name, "MPI_") || !library ||
      __atomic_load_n(&mpi_count, __ATOMIC_RELAXED) != 1 || by == *definer ||
      by == (uintptr_t)&is_library || by == (uintptr_t)&is_module) {
    return symbol->st_value;
  }
  const uintptr_t ours = find(library, name);
  return ours ? ours : symbol->st_value;
}
