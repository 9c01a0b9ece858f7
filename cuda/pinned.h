// SPDX-License-Identifier: BSD-3-Clause
//
// A pool of pinned host memory. Its memory is the process's own, registered with the driver for all
// contexts, in the primary context of a device. If the program destroys that, the memory stays
// valid, pinned or not.
#pragma once

#include <cstddef>
#include <mutex>

#include "cuda/driver.h"

namespace sluice::cuda {

class PinnedPool {
 public:
  // Bytes that may be pinned at a time.
  void set_bound(size_t bytes) { bound_ = bytes; }

  // Memory of at least so many bytes, pinned for all contexts; nullptr if the bound does not allow
  // it or the driver refuses. New memory is registered in the device's primary context. After a
  // refusal the driver is not asked again for some calls, twice as many each time.
  void* reserve(int device, size_t bytes);
  // Keeps the memory for later calls.
  void give_back(void* memory);
  // Unpins and frees what was given back.
  void clear();

 private:
  struct Block {
    Block* next;
    void* memory;
    size_t bytes;
    int device;  // in whose primary context it was registered
    bool in_use;
  };

  Block* find_idle(size_t bytes, size_t most);
  Block* make(int device, size_t bytes);
  bool pin(int device, void* memory, size_t bytes);
  bool make_room(size_t bytes);
  void release(Block** link);

  std::mutex mutex_;
  Block* blocks_ = nullptr;
  size_t bound_ = 0, pinned_ = 0;
  unsigned refusals_ = 0;  // in a row
  unsigned calls_ = 0;     // in which the driver is not asked
};

}  // namespace sluice::cuda
