// SPDX-License-Identifier: BSD-3-Clause
//
// One function at one size: its memory, the call, and the check of the results.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>

#include "osu/device.h"
#include "osu/function.h"
#include "osu/pattern.h"

namespace sluice::osu {

class Trial {
 public:
  virtual ~Trial() = default;
  // Prepares a call. Rounds count up, so that stale results of an earlier call are detected.
  virtual void prepare(uint32_t round) = 0;
  // Makes the call and returns its duration in seconds.
  virtual double call() = 0;
  // Collective. Empty if the results are right on this rank, else what is wrong.
  virtual std::string verify() = 0;
};

// Where a trial's buffers are, and where they begin. (MPI_Bcast has one: the root's is a send
// buffer, the others' are receive buffers.)
struct Buffers {
  bool in_place = false;
  size_t send_offset = 0, recv_offset = 0;  // bytes into a page
  Place send = Place::host, recv = Place::host;

  bool need_device() const { return send != Place::host || recv != Place::host; }
};

// Bytes of both buffers of such a trial on one rank.
size_t memory_of(const Function& function, const ElementType& type, size_t count, int ranks);

// A trial of `count` elements on MPI_COMM_WORLD.
std::unique_ptr<Trial> make_trial(const Function& function, const ElementType& type, size_t count,
                                  const Buffers& buffers);

}  // namespace sluice::osu
