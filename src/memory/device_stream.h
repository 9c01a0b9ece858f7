// SPDX-License-Identifier: BSD-3-Clause
//
// Copies and reductions within the memory of devices, on a stream of Sluice's own, in order.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "src/base/status.h"
#include "src/engine/copy_wait.h"
#include "src/memory/devices.h"
#include "src/reduce/kernel.h"

namespace sluice {

// Whether a device reduces such elements (SluiceCuda::can_reduce). To be called once a buffer is on
// a device.
bool can_reduce_on_device(const Arithmetic& arithmetic);

class DeviceStream {
 public:
  explicit DeviceStream(CopyWait& wait) : wait_(wait) {}
  ~DeviceStream() { close(); }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  // In the primary context of a device. To be called once.
  Status open(int device);
  // These begin. After the first failure, which `wait` tells, they do nothing.
  void copy(std::byte* to, const std::byte* from, size_t bytes);
  // operands: 2 to sluice_cuda_operands.
  void reduce(const Arithmetic& arithmetic, std::span<const void* const> operands, void* out,
              size_t elements);
  // Returns when all that was begun is done, or something has failed. MPI and messages go on
  // meanwhile.
  Status wait();
  // Whether the wait itself has failed, so that what was begun may still run.
  bool is_abandoned() const { return abandoned_; }

 private:
  void check(int result, const char* why);
  void close();

  CopyWait& wait_;
  SluiceCudaStream* stream_ = nullptr;
  int device_ = -1;
  bool pending_ = false, abandoned_ = false;
  Status failure_;
};

}  // namespace sluice
