// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/datatypes.h"

#include <memory>
#include <mutex>

#include "src/mpi/refusal.h"
#include "src/mpi/runtime.h"
#include "src/mpi/thread_state.h"
#include "src/mpi/typemap.h"

namespace sluice {
namespace {

// What hangs on a type.
struct Description {
  Datatype datatype;
  Layout layout;
};

const Datatype* attach(MPI_Datatype handle) {
  auto made = std::make_unique<Description>();
  Datatype& datatype = made->datatype;
  if (!measure_datatype(handle, &datatype) || !read_layout(handle, &made->layout)) return nullptr;
  if (made->layout.bytes() != datatype.size) return nullptr;
  datatype.start = made->layout.start();
  datatype.run = made->layout.is_run();
  datatype.committed = is_committed(handle);
  datatype.layout = &made->layout;
  const int keyval = Runtime::get().datatype_keyval();
  if (real().Type_set_attr(handle, keyval, made.get())) return nullptr;
  return &made.release()->datatype;
}

const Datatype* look_up(MPI_Datatype handle) {
  if (handle == real().datatype_null) return nullptr;
  void* value = nullptr;
  int found = 0;
  {
    const QuietErrors errors;
    const int keyval = Runtime::get().datatype_keyval();
    if (real().Type_get_attr(handle, keyval, &value, &found)) return nullptr;
  }
  if (found) return &static_cast<const Description*>(value)->datatype;
  // Two threads may meet a type at once: the second attribute would take the first one's away.
  static constinit std::mutex attaching;
  const std::lock_guard lock(attaching);
  if (real().Type_get_attr(handle, Runtime::get().datatype_keyval(), &value, &found))
    return nullptr;
  return found ? &static_cast<const Description*>(value)->datatype : attach(handle);
}

}  // namespace

const Datatype* find_datatype(MPI_Datatype handle) {
  ThreadState& thread = this_thread;
  const uint64_t generation = datatypes_freed.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < 2; ++i) {
    if (thread.datatype_handle[i] == handle && thread.datatype_generation[i] == generation &&
        thread.datatype[i]) {
      return thread.datatype[i];
    }
  }
  const Datatype* type = look_up(handle);
  const uint32_t place = thread.next_datatype;
  thread.next_datatype = 1 - place;
  thread.datatype_handle[place] = handle;
  thread.datatype_generation[place] = generation;
  thread.datatype[place] = type;
  return type;
}

void release_datatype(void* attribute) { delete static_cast<Description*>(attribute); }

bool measure_datatype(MPI_Datatype handle, Datatype* description) {
  const Real& mpi = real();
  MPI_Count size = 0, lower = 0, extent = 0, start = 0, true_extent = 0;
  if (handle == mpi.datatype_null || mpi.Type_size_x(handle, &size) ||
      mpi.Type_get_extent_x(handle, &lower, &extent) ||
      mpi.Type_get_true_extent_x(handle, &start, &true_extent) || size < 0) {
    return false;
  }
  *description = {handle, static_cast<size_t>(size), static_cast<ptrdiff_t>(start),
                  static_cast<ptrdiff_t>(extent)};
  return true;
}

}  // namespace sluice
