// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/interposition.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace sluice {
namespace {

using Relocation = ElfW(Rela);
using Symbol = ElfW(Sym);

// The relocations of slots. A jump slot may be bound at the first call.
#if defined(__x86_64__) && defined(__LP64__)
constexpr uint32_t jump_slot = R_X86_64_JUMP_SLOT, address_slot = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__) && defined(__LP64__)
constexpr uint32_t jump_slot = R_AARCH64_JUMP_SLOT, address_slot = R_AARCH64_GLOB_DAT;
#else
constexpr uint32_t jump_slot = UINT32_MAX, address_slot = UINT32_MAX;  // nothing is looked at
#endif

uint32_t type_of(const Relocation& slot) { return static_cast<uint32_t>(slot.r_info); }

// The program, or a library. It may be unloaded while this looks, unless the module needs it or it
// has a function that was found: only then its memory is read.
struct Object {
  uintptr_t base, begin, end;
  const ElfW(Dyn) * dynamic;

  bool holds(uintptr_t address) const { return begin <= address && address < end; }
  const ElfW(Dyn) * entry(ElfW(Sxword) tag) const {
    for (const auto* each = dynamic; each->d_tag != DT_NULL; ++each) {
      if (each->d_tag == tag) return each;
    }
    return nullptr;
  }
  size_t value(ElfW(Sxword) tag) const {
    const auto* const found = entry(tag);
    return found ? found->d_un.d_val : 0;
  }
  // (Where the dynamic section can be written, the loader has made addresses of its offsets.)
  template <typename Type>
  const Type* table(ElfW(Sxword) tag) const {
    const uintptr_t at = value(tag);
    return reinterpret_cast<const Type*>(at < base ? base + at : at);
  }
  const char* name_at(size_t offset) const { return table<char>(DT_STRTAB) + offset; }
  std::span<const Relocation> slots(ElfW(Sxword) at, ElfW(Sxword) bytes) const {
    if (!entry(at) || !entry(DT_SYMTAB) || !entry(DT_STRTAB)) return {};
    return {table<Relocation>(at), value(bytes) / sizeof(Relocation)};
  }
  // Whether slots are bound when they are first used, in the program's functions before its own.
  bool is_lazy() const {
    return !entry(DT_BIND_NOW) && !entry(DT_SYMBOLIC) && (value(DT_FLAGS_1) & DF_1_NOW) == 0 &&
           (value(DT_FLAGS) & (DF_BIND_NOW | DF_SYMBOLIC)) == 0;
  }
};

int collect(dl_phdr_info* info, size_t, void* to) {
  Object made{info->dlpi_addr, UINTPTR_MAX, 0, nullptr};
  for (const auto& part : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_DYNAMIC) made.dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (part.p_type != PT_LOAD) continue;
    made.begin = std::min<uintptr_t>(made.begin, begin);
    made.end = std::max<uintptr_t>(made.end, begin + part.p_memsz);
  }
  if (made.dynamic) static_cast<std::vector<Object>*>(to)->push_back(made);
  return 0;
}

using Objects = std::vector<Object>;

// The program is the first.
Objects loaded_objects() {
  Objects objects;
  objects.reserve(128);
  dl_iterate_phdr(collect, &objects);
  return objects;
}

const Object* holder(const Objects& among, uintptr_t address) {
  const auto found =
      std::ranges::find_if(among, [&](const Object& each) { return each.holds(address); });
  return found == among.end() ? nullptr : &*found;
}

const Object* holder(const Objects& among, const void* address) {
  return holder(among, reinterpret_cast<uintptr_t>(address));
}

// The library that the loader has under a name; null if none.
const Object* named(const Objects& among, const char* name) {
  void* const opened = dlmopen(LM_ID_BASE, name, RTLD_LAZY | RTLD_NOLOAD);
  link_map* map = nullptr;
  const bool known = opened && dlinfo(opened, RTLD_DI_LINKMAP, &map) == 0;
  const Object* const found = known ? holder(among, map->l_ld) : nullptr;
  if (opened) dlclose(opened);
  return found;
}

// The object, and all that it needs.
Objects with_needed(const Objects& loaded, const Object& root) {
  Objects found{root};
  for (size_t next = 0; next < found.size(); ++next) {
    const Object user = found[next];
    for (const auto* each = user.dynamic; each->d_tag != DT_NULL; ++each) {
      if (each->d_tag != DT_NEEDED) continue;
      const Object* const needed = named(loaded, user.name_at(each->d_un.d_val));
      if (needed && !holder(found, needed->begin)) found.push_back(*needed);
    }
  }
  return found;
}

uintptr_t address_of(void* where, const char* function) {
  return reinterpret_cast<uintptr_t>(dlsym(where, function));
}

// The dynamic symbol at an address; null if there is none.
const Symbol* symbol_at(uintptr_t address) {
  Dl_info about{};
  void* symbol = nullptr;
  const bool found =
      dladdr1(reinterpret_cast<void*>(address), &about, &symbol, RTLD_DL_SYMENT) != 0;
  return found ? static_cast<const Symbol*>(symbol) : nullptr;
}

std::string path_at(uintptr_t address) {
  Dl_info about{};
  const bool found = dladdr(reinterpret_cast<void*>(address), &about) != 0 && about.dli_fname;
  return found ? about.dli_fname : "";
}

class Search {
 public:
  Search(void* module, const Object& root, const Object& self, const Objects& loaded)
      : module_(module), root_(root), loaded_(loaded), known_(with_needed(loaded, self)) {
    for (const Object& each : with_needed(loaded, root)) {
      if (!holder(known_, each.begin)) examined_.push_back(each);
    }
    known_.insert(known_.begin(), examined_.begin(), examined_.end());
  }

  Interposition run() const {
    for (const Object& user : examined_) {
      if (user.begin == root_.begin) continue;  // the module: opened with RTLD_DEEPBIND
      for (const auto& slots :
           {user.slots(DT_JMPREL, DT_PLTRELSZ), user.slots(DT_RELA, DT_RELASZ)}) {
        for (const Relocation& slot : slots) {
          const Object* const by = usurper(user, slot);
          if (!by) continue;
          const bool program = by == &loaded_.front();
          return {path_at(user.begin), name_of(user, slot), program ? "" : path_at(by->begin)};
        }
      }
    }
    return {};
  }

 private:
  static const Symbol& symbol_of(const Object& user, const Relocation& slot) {
    return user.table<Symbol>(DT_SYMTAB)[uint64_t{slot.r_info} >> 32];
  }
  static const char* name_of(const Object& user, const Relocation& slot) {
    return user.name_at(symbol_of(user, slot).st_name);
  }
  static bool is_of_function(const Object& user, const Relocation& slot) {
    const uint32_t type = type_of(slot);
    if (type != jump_slot && type != address_slot) return false;
    const auto kind = symbol_of(user, slot).st_info & 0xf;
    return kind == STT_FUNC || (kind == STT_NOTYPE && type == jump_slot);
  }
  uintptr_t target(const Object& user, const Relocation& slot) const;
  bool is_defined(const char* function) const;
  const Object* usurper(const Object& user, const Relocation& slot) const;

  void* const module_;
  const Object& root_;
  const Objects& loaded_;
  Objects known_;     // may be called
  Objects examined_;  // must be called by these, for what they define
};

// Where a call through the slot goes, or would go. (Another thread may be binding it.)
uintptr_t Search::target(const Object& user, const Relocation& slot) const {
  const Symbol& symbol = symbol_of(user, slot);
  const uintptr_t bound = __atomic_load_n(
      reinterpret_cast<const uintptr_t*>(user.base + slot.r_offset), __ATOMIC_RELAXED);
  const bool defined = symbol.st_shndx != SHN_UNDEF;
  if (!user.holds(bound) || (defined && bound == user.base + symbol.st_value)) return bound;
  if (type_of(slot) != jump_slot || (symbol.st_other & 3) != STV_DEFAULT || !user.is_lazy()) {
    return bound;
  }
  const uintptr_t first = address_of(RTLD_DEFAULT, name_of(user, slot));
  const Object* const of = holder(loaded_, first);
  return of && !of->entry(DT_VERDEF) ? first : bound;
}

// By one of the libraries that must be called then.
bool Search::is_defined(const char* function) const {
  const uintptr_t found = address_of(module_, function);
  const Object* const definer = holder(examined_, found);
  if (!definer || definer->begin == root_.begin) return false;
  const Symbol* const symbol = symbol_at(found);
  return !symbol || symbol->st_info >> 4 != STB_WEAK;
}

// Whose function is called wrongly; null if none is.
const Object* Search::usurper(const Object& user, const Relocation& slot) const {
  if (!is_of_function(user, slot)) return nullptr;
  const uintptr_t called = target(user, slot);
  if (holder(known_, called) || !is_defined(name_of(user, slot))) return nullptr;
  // In a program that is not position-independent, a function that it does not define may have its
  // address, from where it is called.
  const Symbol* const symbol = symbol_at(called);
  return symbol && symbol->st_shndx == SHN_UNDEF ? nullptr : holder(loaded_, called);
}

}  // namespace

Interposition find_interposition(void* module) {
  link_map* map = nullptr;
  if (dlinfo(module, RTLD_DI_LINKMAP, &map) != 0) return {};
  const Objects loaded = loaded_objects();
  const Object* const root = holder(loaded, map->l_ld);
  const Object* const self = holder(loaded, reinterpret_cast<const void*>(&find_interposition));
  return root && self ? Search(module, *root, *self, loaded).run() : Interposition();
}

}  // namespace sluice
