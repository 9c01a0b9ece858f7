/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* dladdr1 */
#include "src/chooser/objects.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <string.h>

const struct link_map* sluice_object_of(const void* address) {
  struct link_map* map = NULL;
  Dl_info about;
  return dladdr1(address, &about, (void**)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

int sluice_is_program(const struct link_map* object) { return !*object->l_name; }

void* sluice_find_in(const char* library, const char* name) {
  void* const opened = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  void* const found = opened ? dlsym(opened, name) : NULL;
  if (opened) dlclose(opened);
  return found;
}

/* The table that an entry of the object's dynamic section names; null if there is none. (The linker
 * makes addresses of offsets only where it can write the section.) */
static const void* table(const struct link_map* object, ElfW(Sxword) tag) {
  for (const ElfW(Dyn)* each = object->l_ld; each->d_tag != DT_NULL; ++each) {
    const uintptr_t at = each->d_un.d_ptr;
    if (each->d_tag == tag) return (const void*)(at < object->l_addr ? object->l_addr + at : at);
  }
  return NULL;
}

void* sluice_find_in_needed(const struct link_map* object, const char* name,
                            int (*accept)(void* symbol, const char* name)) {
  const char* const strings = table(object, DT_STRTAB);
  for (const ElfW(Dyn)* each = object->l_ld; each->d_tag != DT_NULL; ++each) {
    if (each->d_tag != DT_NEEDED) continue;
    void* const found = sluice_find_in(strings + each->d_un.d_val, name);
    if (found && accept(found, name)) return found;
  }
  return NULL;
}

static ElfW(Xword) number(const struct link_map* object, ElfW(Sxword) tag) {
  const ElfW(Dyn)* each = object->l_ld;
  while (each->d_tag != DT_NULL && each->d_tag != tag) ++each;
  return each->d_tag == tag ? each->d_un.d_val : 0;
}

/* (The number of symbols is not told, so those are looked at that relocations name.) */
static enum SluiceReference find_reference(const struct link_map* object, const char* name,
                                           ElfW(Sxword) relocations, ElfW(Sxword) size) {
  const ElfW(Sym)* const symbols = table(object, DT_SYMTAB);
  const char* const strings = table(object, DT_STRTAB);
  const ElfW(Rela)* const all = table(object, relocations);
  const size_t count = all ? number(object, size) / sizeof *all : 0;
  for (size_t i = 0; i < count; ++i) {
    const ElfW(Sym)* const symbol = &symbols[ELF64_R_SYM(all[i].r_info)];
    if (symbol->st_shndx != SHN_UNDEF || strcmp(strings + symbol->st_name, name) != 0) continue;
    return ELF64_ST_BIND(symbol->st_info) == STB_WEAK ? sluice_refers_weakly : sluice_refers;
  }
  return sluice_refers_not;
}

enum SluiceReference sluice_reference(const struct link_map* object, const char* name) {
  const enum SluiceReference found = find_reference(object, name, DT_RELA, DT_RELASZ);
  return found ? found : find_reference(object, name, DT_JMPREL, DT_PLTRELSZ);
}
