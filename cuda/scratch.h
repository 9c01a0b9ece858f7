// SPDX-License-Identifier: BSD-3-Clause
//
// A pool of device memory: what operations of Sluice's own on a device need beside the program's
// buffers. Memory is kept between uses, each piece for the context in which it was allocated. That
// of contexts that the program has destroyed or reset went with them, and is forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "cuda/contexts.h"
#include "cuda/driver.h"
#include "cuda/module.h"

namespace sluice::cuda {

class ScratchPool {
 public:
  // Bytes that may be held at a time.
  void set_bound(size_t bytes) { bound_ = bytes; }

  // Memory of at least so many bytes, aligned to 256, for kernels and copies in the place's
  // context. Nullptr, with the reason, if the bound does not allow it or the driver refuses.
  void* allocate(const SluiceCudaPlace& place, size_t bytes, char* why);
  void* allocate(CUcontext context, size_t bytes, char* why);
  // Keeps the memory for later uses. Nothing may be under way in it any more.
  void release(void* memory);
  // It stays as it is while its context is there, because something may be under way in it for
  // good.
  void abandon(void* memory);
  // Frees what was released.
  void clear();

 private:
  enum class State : uint8_t { idle, in_use, abandoned };
  struct Block {
    Block* next;
    CUcontext context;
    Canary canary;  // the memory itself
    size_t bytes;   // 0 once its context is gone
    State state;
  };

  Block* find_idle(CUcontext context, size_t bytes, size_t most);
  Block* make(CUcontext context, size_t bytes, char* why);
  bool make_room(size_t bytes);
  void drop_gone();
  void set_state(const void* memory, State state);
  void free(Block** link);

  std::mutex mutex_;
  Block* blocks_ = nullptr;
  size_t bound_ = 0, held_ = 0;
};

// The process's.
ScratchPool& scratch();

}  // namespace sluice::cuda
