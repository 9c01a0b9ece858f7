// SPDX-License-Identifier: BSD-3-Clause
//
// How a datatype was constructed, taken apart one level at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "src/mpi/datatypes.h"
#include "src/mpi/real.h"

namespace sluice {

// The components of a type, in the order of its type map: `count` elements of `type`, the first at
// `displacement` bytes, the others an extent apart. The types are MPI's to keep for as long as the
// Typemap lives.
class Typemap {
 public:
  struct Component {
    ptrdiff_t displacement;
    size_t count;
    MPI_Datatype type;
  };
  // False ends the walk.
  using Visitor = std::function<bool(const Component&)>;

  explicit Typemap(MPI_Datatype type);
  ~Typemap();
  Typemap(const Typemap&) = delete;
  Typemap& operator=(const Typemap&) = delete;

  bool is_predefined() const { return predefined_; }
  // The type of which it is a part, where it is a subarray; else null.
  bool is_subarray() const { return combiner_ == MPI_COMBINER_SUBARRAY; }
  MPI_Datatype element() const { return types_[0]; }

  // Whether the components are told: not of distributed arrays, subarrays, and constructors of the
  // past.
  bool is_told() const;
  // Walks over the components until the visitor has had enough. False if it had, or they are not
  // told.
  bool visit(const Visitor& visitor) const;

 private:
  bool visit_vector(const Visitor& visitor) const;
  bool visit_blocks(const Visitor& visitor) const;
  ptrdiff_t element_extent() const;

  int combiner_ = MPI_COMBINER_NAMED;
  bool predefined_ = true;
  std::vector<int> integers_;
  std::vector<MPI_Aint> addresses_;
  std::vector<MPI_Datatype> types_;
};

// Size, bounds and extent of a type, and whether it is a run. False if MPI has no such type.
bool describe_datatype(MPI_Datatype handle, Datatype* description);

}  // namespace sluice
