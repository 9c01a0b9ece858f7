// SPDX-License-Identifier: BSD-3-Clause
//
// A device that does the local work of a call: its input and output lie there, and an Execution
// runs the plan on them. Messages still go from and to host memory, so the peers see no difference.
//
// The model is a CUDA stream: the device does the work that it is given in order, one piece behind
// the other. So work whose data depends on earlier work needs no wait; only the host waits, for
// tickets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/status.h"

namespace sluice {

// The memory that a call takes beside its input and output; bytes.
struct DeviceNeeds {
  size_t scratch = 0;  // of the device
  size_t bounce = 0;   // of the host
};

// `device` pointers are addresses on the device, which the processor must not touch.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;

  // Memory for one call, aligned to 64 bytes; nullptr if there is not so much. Each is asked for
  // once a call, before any work.
  virtual std::byte* scratch(size_t bytes) = 0;
  // Host memory that the device copies from and to.
  virtual std::byte* bounce(size_t bytes) = 0;

  // These begin work, and return before it is done. After a failure they do nothing.
  // out = left (op) right, by the call's operation; out may equal left or right.
  virtual void reduce(const std::byte* left, const std::byte* right, std::byte* out,
                      size_t elements) = 0;
  // Within the device.
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual void copy_out(std::byte* host, const std::byte* device, size_t bytes) = 0;
  virtual void copy_in(std::byte* device, const std::byte* host, size_t bytes) = 0;

  // A ticket for all work so far. Tickets count from 1 in each call.
  virtual uint32_t ticket() = 0;
  // Whether the work of a ticket is done. Does not wait. False after a failure, for good.
  virtual bool reached(uint32_t ticket) = 0;
  // The first failure. What has begun may still run.
  virtual const Status& failure() const = 0;

  // "CUDA device 0".
  virtual std::string name() const = 0;
};

}  // namespace sluice
