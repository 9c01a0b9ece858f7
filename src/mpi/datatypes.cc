// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/datatypes.h"

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "src/mpi/error_probe.h"
#include "src/mpi/thread_state.h"
#include "src/mpi/typemap.h"

namespace sluice {
namespace {

std::unique_ptr<Description> make_description(MPI_Datatype handle, bool committed) {
  auto made = std::make_unique<Description>();
  Datatype& datatype = made->datatype;
  if (!measure_datatype(handle, &datatype)) return nullptr;
  datatype.committed = committed;
  datatype.is_read = read_layout(handle, &made->layout) && made->layout.bytes() == datatype.size;
  if (!datatype.is_read) return made;
  datatype.start = made->layout.start();
  datatype.run = made->layout.is_run();
  datatype.layout = &made->layout;
  return made;
}

// The types that were used so far. A look-up here needs no valid handle, and works while MPI
// deletes the attributes of a type, when MPI's own answers are unreliable.
class SeenTypes {
 public:
  // The description attached to the type; nullptr if there is none.
  const Datatype* find(MPI_Datatype handle) {
    const std::lock_guard lock(mutex_);
    const auto found = met_.find(handle);
    return found == met_.end() || !found->second.attached ? nullptr
                                                          : &found->second.attached->datatype;
  }
  // At the first use of a type: keeps its description for this call. False: it was used before.
  bool keep_first(std::unique_ptr<Description>& description) {
    const std::lock_guard lock(mutex_);
    description->datatype.is_kept = false;
    const auto [place, is_new] = met_.try_emplace(description->datatype.handle);
    if (is_new) place->second.first = std::move(description);
    return is_new;
  }
  // At a later use: deletes the description of the first use, unless another thread's call may
  // still use it.
  void drop_first(MPI_Datatype handle) {
    if (threads_call_mpi.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    if (const auto found = met_.find(handle); found != met_.end()) found->second.first.reset();
  }
  // Records that the description is attached to the type; null: is not.
  void attach(MPI_Datatype handle, Description* description) {
    const std::lock_guard lock(mutex_);
    met_[handle].attached = description;
  }
  void forget(MPI_Datatype handle) {
    const std::lock_guard lock(mutex_);
    met_.erase(handle);
  }
  // Returns the description of the first use and forgets the type, if none is attached to it.
  std::unique_ptr<Description> take_first(MPI_Datatype handle) {
    const std::lock_guard lock(mutex_);
    const auto found = met_.find(handle);
    if (found == met_.end() || found->second.attached) return nullptr;
    std::unique_ptr<Description> first = std::move(found->second.first);
    met_.erase(found);
    return first;
  }

 private:
  struct Met {
    std::unique_ptr<Description> first;
    Description* attached = nullptr;
  };
  std::mutex mutex_;
  std::map<MPI_Datatype, Met> met_;
};

SeenTypes& seen_types() {
  static SeenTypes& all = *new SeenTypes;  // outlives exit()
  return all;
}

// Attributes are not copied to duplicates. (MPI's own null copy functions are symbols of the MPI
// library, which Sluice is not linked with.)
int copy_no_description(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

// Called when MPI deletes the attribute of a type; `attribute` is the attached Description.
int release_description(MPI_Datatype, int, void* attribute, void*) {
  datatypes_freed.fetch_add(1, std::memory_order_release);
  std::unique_ptr<Description> description(static_cast<Description*>(attribute));
  seen_types().forget(description->datatype.handle);
  if (this_thread.freed_datatype) this_thread.freed_datatype->adopt(description);
  return MPI_SUCCESS;
}

// The key of the attribute; made when first needed.
int datatype_keyval() {
  static const int made = [] {
    int keyval = MPI_KEYVAL_INVALID;
    real().Type_create_keyval(copy_no_description, release_description, &keyval, nullptr);
    return keyval;
  }();
  return made;
}

// Attaches the description to the type. If MPI can't, this rank alone lacks memory, and must not be
// the only one to leave the call to MPI. So this throws std::bad_alloc, and the others are told.
const Datatype* attach(std::unique_ptr<Description> description) {
  // Two threads may use a type at once: the second attribute would replace and delete the first.
  static constinit std::mutex attaching;
  const std::lock_guard lock(attaching);
  const MPI_Datatype handle = description->datatype.handle;
  if (const Datatype* type = seen_types().find(handle)) return type;
  description->datatype.is_kept = true;
  seen_types().attach(handle, description.get());
  if (real().Type_set_attr(handle, datatype_keyval(), description.get())) {
    seen_types().attach(handle, nullptr);
    throw std::bad_alloc();
  }
  return &description.release()->datatype;
}

const Datatype* look_up(MPI_Datatype handle) {
  FreedDatatype* const freed = this_thread.freed_datatype;
  if (const Datatype* type = freed ? freed->find(handle) : nullptr) return type;
  if (const Datatype* type = seen_types().find(handle)) return type;
  bool committed = false;
  if (!is_datatype(handle, &committed)) return nullptr;
  if (freed) return freed->describe(handle, committed);
  seen_types().drop_first(handle);
  std::unique_ptr<Description> made = make_description(handle, committed);
  if (!made) return nullptr;
  const Datatype* const type = &made->datatype;
  if (!seen_types().keep_first(made)) return attach(std::move(made));
  this_thread.passing_datatype = type;
  return type;
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
  const Datatype* const passing = thread.passing_datatype;
  if (passing && passing->handle == handle) return passing;
  const Datatype* type = look_up(handle);
  if (type && !type->is_kept) return type;
  const uint32_t place = thread.next_datatype;
  thread.next_datatype = 1 - place;
  thread.datatype_handle[place] = handle;
  thread.datatype_generation[place] = generation;
  thread.datatype[place] = type;
  return type;
}

FreedDatatype::FreedDatatype(MPI_Datatype handle)
    : handle_(handle), outer_(this_thread.freed_datatype) {
  this_thread.freed_datatype = this;
  if (seen_types().find(handle)) {
    real().Type_delete_attr(handle, datatype_keyval());
  } else {
    own_ = seen_types().take_first(handle);
  }
}

// From now on the handles may mean other types.
FreedDatatype::~FreedDatatype() {
  this_thread.freed_datatype = outer_;
  if ((own_ && own_->datatype.is_kept) || !descriptions_.empty())
    datatypes_freed.fetch_add(1, std::memory_order_release);
}

const Datatype* FreedDatatype::find(MPI_Datatype handle) const {
  if (own_ && handle == handle_) return &own_->datatype;
  for (const auto& description : descriptions_) {
    if (description->datatype.handle == handle) return &description->datatype;
  }
  return outer_ ? outer_->find(handle) : nullptr;
}

// Errors are silenced: Open MPI has already taken the type apart when it calls callbacks.
const Datatype* FreedDatatype::describe(MPI_Datatype handle, bool committed) {
  const QuietErrors errors;
  std::unique_ptr<Description> made = make_description(handle, committed);
  const bool is_told = made && made->datatype.is_read;
  return is_told ? &descriptions_.emplace_back(std::move(made))->datatype : nullptr;
}

void FreedDatatype::adopt(std::unique_ptr<Description>& description) {
  if (description->datatype.handle == handle_) own_ = std::move(description);
}

void Description::replace(Side* side) {
  if (!side->type) return;
  datatype = *static_cast<const Datatype*>(side->type);
  if (side->type->layout) {
    layout = *side->type->layout;
    datatype.layout = &layout;
  }
  side->type = &datatype;
}

}  // namespace sluice
