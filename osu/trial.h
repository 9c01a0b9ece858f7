// SPDX-License-Identifier: BSD-3-Clause
//
// One function at one size: its memory, the call, and the check that the call did what it must.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>

#include "osu/function.h"
#include "osu/pattern.h"

namespace sluice::osu {

class Trial {
 public:
  virtual ~Trial() = default;
  // Makes ready for a call. Rounds count up, so that no result can be left over from the last call.
  virtual void prepare(uint32_t round) = 0;
  // The call; returns the seconds it took.
  virtual double call() = 0;
  // Collective. Empty if the call did what it must on this rank, else what is wrong.
  virtual std::string verify() = 0;
};

// How a trial lays out its memory.
struct Buffers {
  bool in_place = false;
  size_t send_offset = 0, recv_offset = 0;  // bytes from a page's begin
};

// Bytes that the buffers of such a trial take on one rank.
size_t memory_of(const Function& function, const ElementType& type, size_t count, int ranks);

// A trial of `count` elements on MPI_COMM_WORLD.
std::unique_ptr<Trial> make_trial(const Function& function, const ElementType& type, size_t count,
                                  const Buffers& buffers);

}  // namespace sluice::osu
