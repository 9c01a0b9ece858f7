// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/real.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/log.h"

namespace sluice {
namespace {

int collect_name(dl_phdr_info* object, size_t, void* names) {
  const std::string_view path(object->dlpi_name);
  const std::string_view base = path.substr(path.rfind('/') + 1);
  if (base.starts_with("libmpi")) static_cast<std::vector<std::string>*>(names)->emplace_back(path);
  return 0;
}

// The MPI library if it was loaded with RTLD_LOCAL, as by an extension module of a language; else
// nullptr.
void* find_hidden_library() {
  std::vector<std::string> names;
  dl_iterate_phdr(collect_name, &names);
  for (const std::string& name : names) {
    void* library = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library && dlsym(library, "PMPI_Init")) return library;
  }
  return nullptr;
}

void* find_hidden(const char* symbol) {
  static void* const library = find_hidden_library();
  return library ? dlsym(library, symbol) : nullptr;
}

void* find_function(const char* symbol) {
  void* const found = dlsym(RTLD_NEXT, symbol);
  return found ? found : find_hidden(symbol);
}

[[noreturn]] void end_without(const char* symbol) {
  log(Level::error, "no MPI library has %s", symbol);
  std::_Exit(EXIT_FAILURE);
}

// Sets the pointer to null if MPI lacks the function.
template <typename Function>
void look_up_if_there(Function*& pointer, const char* symbol) {
  pointer = reinterpret_cast<Function*>(find_function(symbol));
}

template <typename Function>
void look_up(Function*& pointer, const char* symbol) {
  look_up_if_there(pointer, symbol);
  if (!pointer) end_without(symbol);
}

}  // namespace

std::string library_version() {
  // MPICH writes up to 8,192 characters here, and Open MPI's headers have room for 256.
  std::string text(8192, '\0');
  int length = 0;
  int (*get_library_version)(char*, int*);
  look_up(get_library_version, "PMPI_Get_library_version");
  get_library_version(text.data(), &length);
  text.resize(text.find_first_of(std::string_view(",\n\0", 3)));
  std::ranges::replace(text, '\t', ' ');
  return text;
}

namespace {

// Open MPI's handles are pointers, those of MPICH and its derivatives integers: passed to the other
// kind of library, they mean nothing. Ends the process if the program's MPI is not of the kind that
// this library was compiled for.
void refuse_other_kind() {
#ifdef SLUICE_OPEN_MPI
  constexpr bool pointers = true;
  constexpr const char* built_for = "Open MPI";
#else
  constexpr bool pointers = false;
  constexpr const char* built_for = "MPICH";
#endif
  if ((find_data("ompi_mpi_comm_world") != nullptr) == pointers) return;
  log(Level::error,
      "this libsluice.so was built for %s, but the program's MPI is %s: use one that was "
      "configured for it (--with-mpi)",
      built_for, library_version().c_str());
  std::_Exit(EXIT_FAILURE);
}

Real look_up_all() {
  refuse_other_kind();
  Real found;
#define SLUICE_LOOK_UP(function, ...) look_up(found.function, "PMPI_" #function);
#define SLUICE_LOOK_UP_IF_THERE(function) look_up_if_there(found.function, "PMPI_" #function);
#define SLUICE_LOOK_UP_LATE(function)                                        \
  SLUICE_LOOK_UP_IF_THERE(function)                                          \
  if (!found.function) {                                                     \
    found.function = [](auto...) -> int { end_without("PMPI_" #function); }; \
  }
#define SLUICE_LOOK_UP_LARGE(function, ...) SLUICE_LOOK_UP_LATE(function##_c)
  SLUICE_COLLECTIVES(SLUICE_LOOK_UP)
  SLUICE_COUNTING_COLLECTIVES(SLUICE_LOOK_UP_LARGE)
  SLUICE_LOOK_UP_LATE(Comm_create_from_group)
  SLUICE_USED(SLUICE_LOOK_UP)
  SLUICE_USED_OF_MPI_4(SLUICE_LOOK_UP_IF_THERE)
  SLUICE_USED_OF_ONE(SLUICE_LOOK_UP)
#undef SLUICE_LOOK_UP_LARGE
#undef SLUICE_LOOK_UP_LATE
#undef SLUICE_LOOK_UP_IF_THERE
#undef SLUICE_LOOK_UP
  found.comm_null = MPI_COMM_NULL;
  found.comm_self = MPI_COMM_SELF;
  found.comm_world = MPI_COMM_WORLD;
  found.datatype_null = MPI_DATATYPE_NULL;
  found.errors_return = MPI_ERRORS_RETURN;
  found.info_null = MPI_INFO_NULL;
  found.op_null = MPI_OP_NULL;
  return found;
}

}  // namespace

// Searches the global scope first: a program that is not position-independent has copies of MPI's
// data, and these are the ones in use.
void* find_data(const char* symbol) {
  void* found = dlsym(RTLD_DEFAULT, symbol);
  return found ? found : find_hidden(symbol);
}

const Real& real() {
  static const Real table = look_up_all();
  return table;
}

}  // namespace sluice
