// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/datatype.h"

#include <cstddef>

namespace sluice {

bool measure_datatype(MPI_Datatype handle, Datatype* description) {
  const Real& mpi = real();
  MPI_Count size = 0, lower = 0, extent = 0, start = 0, true_extent = 0;
  if (handle == mpi.datatype_null || mpi.Type_size_x(handle, &size) ||
      mpi.Type_get_extent_x(handle, &lower, &extent) ||
      mpi.Type_get_true_extent_x(handle, &start, &true_extent) || size < 0) {
    return false;
  }
  *description = {};
  description->handle = handle;
  description->size = static_cast<size_t>(size);
  description->start = static_cast<ptrdiff_t>(start);
  description->extent = static_cast<ptrdiff_t>(extent);
  return true;
}

}  // namespace sluice
