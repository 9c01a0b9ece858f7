// SPDX-License-Identifier: BSD-3-Clause
//
// A call that is made aside: with the program's operands, but on memory of a trial's own, on the
// host. Whatever becomes of it, the program's buffers are as before. The call is a reduction of a
// predefined type without gaps.
#pragma once

#include "src/engine/copy_wait.h"
#include "src/engine/trials.h"
#include "src/mpi/exchange.h"

namespace sluice {

// Whether MPI_Reduce takes MPI_IN_PLACE. (In MPICH 4.0.2 it reads from that address if the root is
// not rank 0.)
#ifdef SLUICE_OPEN_MPI
inline constexpr bool reduces_in_place = true;
#else
inline constexpr bool reduces_in_place = false;
#endif

class Aside {
 public:
  // scratch: for the operand and the result, each as long as the call's vector or less.
  Aside(const Exchange& call, const AsideMemory& scratch);
  // To be called each time before the call is made: copies the operand, if the call is in place or
  // it lies on a device. (Of several buffers, the first one's will do.) If that fails, the operand
  // is zeros. Throws nothing.
  Status prepare(CopyWait& wait);
  // That call. Its views may be set each time.
  Exchange& exchange() { return aside_; }
  // Whether the call takes as long aside as otherwise: no data lies on a device.
  bool is_telling() const { return is_telling_; }

 private:
  const Side operand_;
  std::byte* const copy_;  // nullptr: the program's operand is used
  const bool is_telling_;
  Exchange aside_;
};

}  // namespace sluice
