// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/narrow_floats.h"

#include <atomic>
#include <iterator>
#include <mutex>

#include "sluice/sluice.h"

namespace sluice {
namespace {

// The operations defined on these types.
constexpr Op ops[] = {Op::sum, Op::prod, Op::min, Op::max};

struct NarrowFloat {
  Type type;
  const char* name;
  MPI_User_function* functions[std::size(ops)];
  std::atomic<bool> made{false};  // if so, what follows is valid until MPI_Finalize
  MPI_Datatype handle{};
  MPI_Op substitutes[std::size(ops)]{};
};

template <Type type, Op op>
void reduce(void* left, void* right, int* n, MPI_Datatype*) {
  find_kernel(op, type)(left, right, right, static_cast<size_t>(*n), nullptr);
}

template <Type type>
constexpr NarrowFloat describe(const char* name) {
  return {type,
          name,
          {reduce<type, Op::sum>, reduce<type, Op::prod>, reduce<type, Op::min>,
           reduce<type, Op::max>}};
}

constinit NarrowFloat narrow_floats[] = {describe<Type::float16>("SLUICE_FLOAT16"),
                                         describe<Type::bfloat16>("SLUICE_BFLOAT16")};
constinit std::mutex making;

const NarrowFloat* find(MPI_Datatype handle) {
  for (const NarrowFloat& each : narrow_floats) {
    if (each.made.load(std::memory_order_acquire) && each.handle == handle) return &each;
  }
  return nullptr;
}

int make(NarrowFloat& narrow) {
  int error = real().Type_contiguous(2, MPI_BYTE, &narrow.handle);
  if (!error) error = real().Type_commit(&narrow.handle);
  if (!error) error = real().Type_set_name(narrow.handle, narrow.name);
  for (size_t i = 0; i < std::size(ops) && !error; ++i) {
    error = real().Op_create(narrow.functions[i], 1, &narrow.substitutes[i]);
  }
  return error;
}

// Returns the type in *handle; the first call makes it.
int give(NarrowFloat& narrow, MPI_Datatype* handle) {
  int begun = 0, ended = 0;
  real().Initialized(&begun);
  real().Finalized(&ended);
  if (!begun || ended || !handle) return MPI_ERR_OTHER;
  const std::lock_guard lock(making);
  if (!narrow.made.load(std::memory_order_relaxed)) {
    if (const int error = make(narrow)) return error;
    narrow.made.store(true, std::memory_order_release);
  }
  *handle = narrow.handle;
  return MPI_SUCCESS;
}

}  // namespace

std::optional<Type> narrow_float(MPI_Datatype handle) {
  const NarrowFloat* narrow = find(handle);
  return narrow ? std::optional(narrow->type) : std::nullopt;
}

MPI_Op operation_for_mpi(MPI_Datatype handle, MPI_Op op) {
  const NarrowFloat* narrow = find(handle);
  if (!narrow) return op;
  const MPI_Op known[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
  for (size_t i = 0; i < std::size(ops); ++i) {
    if (known[i] == op) return narrow->substitutes[i];
  }
  return op;
}

void free_narrow_floats() {
  const std::lock_guard lock(making);
  for (NarrowFloat& each : narrow_floats) {
    if (!each.made.exchange(false)) continue;
    for (MPI_Op& op : each.substitutes) real().Op_free(&op);
    real().Type_free(&each.handle);
  }
}

}  // namespace sluice

extern "C" {

int sluice_type_float16(MPI_Datatype* type) { return sluice::give(sluice::narrow_floats[0], type); }

int sluice_type_bfloat16(MPI_Datatype* type) {
  return sluice::give(sluice::narrow_floats[1], type);
}

}  // extern "C"
