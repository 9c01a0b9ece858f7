// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/datatypes.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "src/mpi/runtime.h"
#include "src/mpi/thread_state.h"
#include "src/mpi/typemap.h"

namespace sluice {
namespace {

const Datatype* attach(MPI_Datatype handle) {
  auto description = std::make_unique<Datatype>();
  if (!describe_datatype(handle, description.get())) return nullptr;
  const int keyval = Runtime::get().datatype_keyval();
  if (real().Type_set_attr(handle, keyval, description.get())) return nullptr;
  return description.release();
}

const Datatype* look_up(MPI_Datatype handle) {
  if (handle == real().datatype_null) return nullptr;
  void* value = nullptr;
  int found = 0;
  if (real().Type_get_attr(handle, Runtime::get().datatype_keyval(), &value, &found)) {
    return nullptr;
  }
  return found ? static_cast<const Datatype*>(value) : attach(handle);
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

namespace {

// Moves elements between a user's buffer and dense bytes, by MPI_Pack or MPI_Unpack; takes types
// apart that are too long for these functions' int.
class Mover {
 public:
  Mover(bool packing, MPI_Comm comm) : packing_(packing), comm_(comm) {}

  Status move(const Datatype& type, std::byte* user, size_t n, std::byte* dense) const {
    if (n == 0 || type.size == 0) return {};
    if (type.is_dense(n)) {
      copy(offset_by(user, type.start), dense, n * type.size);
      return {};
    }
    // MPICH's functions refuse MPI_BOTTOM, which is null: the parts of such a type have addresses.
    if (type.size > longest || !user) {
      const Typemap map(type.handle);
      if (map.is_told()) return move_components(type, map, user, n, dense);
      if (type.size > longest) return too_long(type);
    }
    const size_t most = longest / type.size;
    for (size_t done = 0; done < n; done += most) {
      const size_t some = std::min(most, n - done);
      Status status = move_some(type, offset_by(user, static_cast<ptrdiff_t>(done) * type.extent),
                                some, dense + done * type.size);
      if (!status.ok()) return status;
    }
    return {};
  }

 private:
  static constexpr size_t longest = std::numeric_limits<int>::max();

  void copy(std::byte* user, std::byte* dense, size_t bytes) const {
    if (packing_) {
      std::memcpy(dense, user, bytes);
    } else {
      std::memcpy(user, dense, bytes);
    }
  }

  Status move_some(const Datatype& type, std::byte* user, size_t n, std::byte* dense) const {
    const int count = static_cast<int>(n), bytes = static_cast<int>(n * type.size);
    int position = 0;
    const int failed =
        packing_ ? real().Pack(user, count, type.handle, dense, bytes, &position, comm_)
                 : real().Unpack(dense, bytes, &position, user, count, type.handle, comm_);
    if (!failed && position == bytes) return {};
    return {Code::internal, std::string(packing_ ? "MPI_Pack" : "MPI_Unpack") + " moved " +
                                std::to_string(position) + " bytes of " + std::to_string(bytes)};
  }

  Status move_components(const Datatype& type, const Typemap& map, std::byte* user, size_t n,
                         std::byte* dense) const {
    Status status;
    for (size_t i = 0; i < n && status.ok(); ++i) {
      std::byte* const element = offset_by(user, static_cast<ptrdiff_t>(i) * type.extent);
      map.visit([&](const Typemap::Component& part) {
        Datatype inner;
        if (!describe_datatype(part.type, &inner)) {
          status = {Code::internal, "MPI does not describe a part of a datatype"};
          return false;
        }
        status = move(inner, offset_by(element, part.displacement), part.count, dense);
        dense += part.count * inner.size;
        return status.ok();
      });
    }
    return status;
  }

  static Status too_long(const Datatype& type) {
    return {Code::unavailable, "a datatype with elements of " + std::to_string(type.size) +
                                   " bytes which are not contiguous can't be packed"};
  }

  bool packing_;
  MPI_Comm comm_;
};

}  // namespace

Status pack(const Datatype& type, const void* user, size_t n, std::byte* dense, MPI_Comm comm) {
  auto* const bytes = static_cast<std::byte*>(const_cast<void*>(user));
  return Mover(true, comm).move(type, bytes, n, dense);
}

Status unpack(const Datatype& type, const std::byte* dense, size_t n, void* user, MPI_Comm comm) {
  return Mover(false, comm)
      .move(type, static_cast<std::byte*>(user), n, const_cast<std::byte*>(dense));
}

}  // namespace sluice
