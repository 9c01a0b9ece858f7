// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/real.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>

namespace sluice {
namespace {

constinit std::atomic<const SluiceLookUp*> look_up_by{nullptr};

void* find_function(const char* symbol) {
  return look_up_by.load(std::memory_order_acquire)->function(symbol);
}

// Sets the pointer to null if MPI lacks the function.
template <typename Function>
void look_up_if_there(Function*& pointer, const char* symbol) {
  pointer = reinterpret_cast<Function*>(find_function(symbol));
}

template <typename Function>
void look_up(Function*& pointer, const char* symbol, const char** missing) {
  look_up_if_there(pointer, symbol);
  if (!pointer) *missing = symbol;
}

}  // namespace

std::string library_version() {
  // MPICH writes up to 8,192 characters here, and Open MPI's headers have room for 256.
  std::string text(8192, '\0');
  int length = 0;
  int (*get_library_version)(char*, int*);
  look_up_if_there(get_library_version, "PMPI_Get_library_version");
  if (get_library_version) get_library_version(text.data(), &length);
  text.resize(text.find_first_of(std::string_view(",\n\0", 3)));
  std::ranges::replace(text, '\t', ' ');
  return text;
}

namespace {

Real look_up_all() {
  Real found;
#define SLUICE_LOOK_UP(function, ...) look_up(found.function, "PMPI_" #function, &found.missing);
#define SLUICE_LOOK_UP_LARGE(function, ...) SLUICE_LOOK_UP(function##_c)
#define SLUICE_LOOK_UP_I(function, ...) SLUICE_LOOK_UP_OF(SLUICE_NONBLOCKING(function))
#define SLUICE_LOOK_UP_LARGE_I(function, ...) SLUICE_LOOK_UP_LARGE_OF(SLUICE_NONBLOCKING(function))
#define SLUICE_LOOK_UP_INIT(function, ...) SLUICE_LOOK_UP_IF_OF(SLUICE_PERSISTENT(function))
#define SLUICE_LOOK_UP_LARGE_INIT(function, ...) \
  SLUICE_LOOK_UP_LARGE_OF(SLUICE_PERSISTENT(function))
#define SLUICE_LOOK_UP_IF_OF(function) SLUICE_LOOK_UP_IF_THERE(function)
#define SLUICE_LOOK_UP_OF(function) SLUICE_LOOK_UP(function)
#define SLUICE_LOOK_UP_LARGE_OF(function) SLUICE_LOOK_UP_LARGE(function)
#define SLUICE_LOOK_UP_IF_THERE(function) look_up_if_there(found.function, "PMPI_" #function);
  SLUICE_COLLECTIVES(SLUICE_LOOK_UP)
  SLUICE_COUNTING_COLLECTIVES(SLUICE_LOOK_UP_LARGE)
  SLUICE_COLLECTIVES(SLUICE_LOOK_UP_I)
  SLUICE_COUNTING_COLLECTIVES(SLUICE_LOOK_UP_LARGE_I)
  SLUICE_COLLECTIVES(SLUICE_LOOK_UP_INIT)
  SLUICE_COUNTING_COLLECTIVES(SLUICE_LOOK_UP_LARGE_INIT)
  SLUICE_USED(SLUICE_LOOK_UP)
  SLUICE_USED_OF_MPI_4(SLUICE_LOOK_UP_IF_THERE)
  SLUICE_USED_OF_ONE(SLUICE_LOOK_UP)
#undef SLUICE_LOOK_UP_IF_THERE
#undef SLUICE_LOOK_UP_LARGE_OF
#undef SLUICE_LOOK_UP_OF
#undef SLUICE_LOOK_UP_IF_OF
#undef SLUICE_LOOK_UP_LARGE_INIT
#undef SLUICE_LOOK_UP_INIT
#undef SLUICE_LOOK_UP_LARGE_I
#undef SLUICE_LOOK_UP_I
#undef SLUICE_LOOK_UP_LARGE
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

void use_look_up(const SluiceLookUp* look_up) {
  look_up_by.store(look_up, std::memory_order_release);
}

void* find_data(const char* symbol) {
  return look_up_by.load(std::memory_order_acquire)->data(symbol);
}

const Real& real() {
  static const Real table = look_up_all();
  return table;
}

}  // namespace sluice
