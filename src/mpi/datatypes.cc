// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/datatypes.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "src/mpi/refusal.h"
#include "src/mpi/runtime.h"
#include "src/mpi/thread_state.h"
#include "src/mpi/typemap.h"

namespace sluice {
namespace {

std::unique_ptr<Description> describe(MPI_Datatype handle, bool committed) {
  auto made = std::make_unique<Description>();
  Datatype& datatype = made->datatype;
  if (!measure_datatype(handle, &datatype) || !read_layout(handle, &made->layout)) return nullptr;
  if (made->layout.bytes() != datatype.size) return nullptr;
  datatype.start = made->layout.start();
  datatype.run = made->layout.is_run();
  datatype.committed = committed;
  datatype.layout = &made->layout;
  return made;
}

// What hangs on types: asking here needs no valid handle, and MPI's answers are not to be trusted
// while it deletes a type's attributes.
class Attached {
 public:
  const Datatype* find(MPI_Datatype handle) {
    const ThreadLock lock(mutex_);
    const auto found = descriptions_.find(handle);
    return found == descriptions_.end() ? nullptr : &found->second->datatype;
  }
  void add(Description* description) {
    const ThreadLock lock(mutex_);
    descriptions_.emplace(description->datatype.handle, description);
  }
  void remove(const Description* description) {
    const ThreadLock lock(mutex_);
    descriptions_.erase(description->datatype.handle);
  }

 private:
  std::mutex mutex_;
  std::map<MPI_Datatype, Description*> descriptions_;
};

Attached& attached() {
  static Attached& all = *new Attached;  // outlives exit()
  return all;
}

const Datatype* attach(MPI_Datatype handle, bool committed) {
  // Two threads may meet a type at once: the second attribute would take the first one's away.
  static constinit std::mutex attaching;
  const std::lock_guard lock(attaching);
  if (const Datatype* type = attached().find(handle)) return type;
  std::unique_ptr<Description> made = describe(handle, committed);
  if (!made) return nullptr;
  attached().add(made.get());
  if (real().Type_set_attr(handle, Runtime::get().datatype_keyval(), made.get())) {
    attached().remove(made.get());
    return nullptr;
  }
  return &made.release()->datatype;
}

const Datatype* look_up(MPI_Datatype handle) {
  FreedDatatype* const freed = this_thread.freed_datatype;
  if (const Datatype* type = freed ? freed->find(handle) : nullptr) return type;
  if (const Datatype* type = attached().find(handle)) return type;
  bool committed = false;
  if (!is_datatype(handle, &committed)) return nullptr;
  return freed ? freed->describe(handle, committed) : attach(handle, committed);
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

void release_datatype(void* attribute) {
  std::unique_ptr<Description> description(static_cast<Description*>(attribute));
  attached().remove(description.get());
  if (this_thread.freed_datatype) this_thread.freed_datatype->take(description);
}

FreedDatatype::FreedDatatype(MPI_Datatype handle)
    : handle_(handle), outer_(this_thread.freed_datatype) {
  this_thread.freed_datatype = this;
  if (!attached().find(handle)) return;
  real().Type_delete_attr(handle, Runtime::get().datatype_keyval());
}

// The handles may mean other types from now on.
FreedDatatype::~FreedDatatype() {
  this_thread.freed_datatype = outer_;
  if (own_ || !descriptions_.empty()) datatypes_freed.fetch_add(1, std::memory_order_release);
}

const Datatype* FreedDatatype::find(MPI_Datatype handle) const {
  if (own_ && handle == handle_) return &own_->datatype;
  for (const auto& description : descriptions_) {
    if (description->datatype.handle == handle) return &description->datatype;
  }
  return outer_ ? outer_->find(handle) : nullptr;
}

// (Open MPI has taken a type apart when it calls its callbacks.)
const Datatype* FreedDatatype::describe(MPI_Datatype handle, bool committed) {
  const QuietErrors errors;
  std::unique_ptr<Description> made = sluice::describe(handle, committed);
  return made ? &descriptions_.emplace_back(std::move(made))->datatype : nullptr;
}

void FreedDatatype::take(std::unique_ptr<Description>& description) {
  if (description->datatype.handle == handle_) own_ = std::move(description);
}

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
