// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes of MPI, as far as moving them goes: how many bytes they carry, and where these lie in
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/mpi/layout.h"
#include "src/mpi/real.h"

namespace sluice {

struct Datatype {
  MPI_Datatype handle{};
  size_t size = 0;  // bytes of its type signature: what is on the wire
  // Where its first byte lies, from the buffer's address on. (MPI's true lower bound may be lower:
  // MPICH's counts components without data, too.)
  ptrdiff_t start = 0;
  ptrdiff_t extent = 0;   // from one element to the next
  bool run = false;       // an element is `size` bytes one after another, in the signature's order
  bool committed = true;  // when it was first seen; if not, it may have been since
  bool is_kept = true;    // for later calls
  const Layout* layout = nullptr;  // kept with the type; null only where elements are dense

  // Whether n elements in a row are one run, that is, already as they would be packed.
  bool is_dense(size_t n) const {
    return size == 0 || (run && (n <= 1 || extent == static_cast<ptrdiff_t>(size)));
  }
};

// Of a type.
struct Description {
  Datatype datatype;
  Layout layout;
};

// The description of a type; nullptr for MPI_DATATYPE_NULL, and where MPI refuses to describe it.
// May throw std::bad_alloc.
// From the second call on that uses a type it is kept with it (as an attribute) until it is freed;
// what the first one gets is for that call. (Many types are used once, as by ScaLAPACK, which makes
// one for each broadcast: to hang something on them takes longer than to describe them.)
const Datatype* find_datatype(MPI_Datatype handle);

// The type is freed: the attribute's value, as the description was attached.
void release_datatype(void* attribute);

// While it lives, this thread frees a type, and MPI calls the program's callbacks for attributes,
// of types that this one was made of, too. The type's description hangs here instead, and so does
// what is described for calls that they make: MPI would not tell when it is to go.
class FreedDatatype {
 public:
  explicit FreedDatatype(MPI_Datatype handle);
  ~FreedDatatype();
  FreedDatatype(const FreedDatatype&) = delete;
  FreedDatatype& operator=(const FreedDatatype&) = delete;

  // What hangs here.
  const Datatype* find(MPI_Datatype handle) const;
  // Describes a type; nullptr where MPI does not tell any more.
  const Datatype* describe(MPI_Datatype handle, bool committed);
  // Takes what hung on a type, if it is the one being freed.
  void take(std::unique_ptr<Description>& description);

 private:
  const MPI_Datatype handle_;
  FreedDatatype* const outer_;
  std::unique_ptr<Description> own_;
  std::vector<std::unique_ptr<Description>> descriptions_;
};

// Size, extent and, as its start, the true lower bound alone. False if MPI has no such type.
bool measure_datatype(MPI_Datatype handle, Datatype* description);

}  // namespace sluice
