// SPDX-License-Identifier: BSD-3-Clause
//
// The datatypes that calls use, described as far as moving data needs.
#pragma once

#include <memory>
#include <vector>

#include "src/memory/layout.h"
#include "src/memory/side.h"
#include "src/mpi/datatype.h"
#include "src/mpi/real.h"

namespace sluice {

// A datatype and the layout that it points to.
struct Description {
  Datatype datatype;
  Layout layout;

  // Makes this a copy of a side's, which may be valid until the thread's next call, or until
  // another thread frees the type; and the side's.
  void replace(Side* side);
};

// The description of a type; nullptr for MPI_DATATYPE_NULL, and if MPI has no such type.
// May throw std::bad_alloc.
// From its second use on, the type keeps its description as an attribute until it is freed. The
// description made at the first use is for that call only. (Many types are used once: ScaLAPACK
// makes one for each broadcast. To attach an attribute takes longer than to describe the type.)
const Datatype* find_datatype(MPI_Datatype handle);

// Exists while this thread frees a type. MPI then calls the program's attribute callbacks, also for
// types that this one was made of. Callbacks may use the types, so this object holds the
// description of the freed type, and those of types that the callbacks' calls need described. (If
// they were attached to the types, MPI would not report when to delete them.)
class FreedDatatype {
 public:
  explicit FreedDatatype(MPI_Datatype handle);
  ~FreedDatatype();
  FreedDatatype(const FreedDatatype&) = delete;
  FreedDatatype& operator=(const FreedDatatype&) = delete;

  // A description held here or by an outer object of this class; nullptr if there is none.
  const Datatype* find(MPI_Datatype handle) const;
  // Describes a type and keeps the description here; nullptr if MPI no longer describes the type.
  const Datatype* describe(MPI_Datatype handle, bool committed);
  // Takes over a description that was attached to a type, if it is the type being freed.
  void adopt(std::unique_ptr<Description>& description);

 private:
  const MPI_Datatype handle_;
  FreedDatatype* const outer_;
  std::unique_ptr<Description> own_;
  std::vector<std::unique_ptr<Description>> descriptions_;
};

}  // namespace sluice
