// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/pinned.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "cuda/contexts.h"
#include "cuda/kind.h"

namespace sluice::cuda {
namespace {

constexpr size_t least = size_t{64} << 10;

// Sizes in steps of an eighth, so that memory serves calls of similar size.
size_t rounded(size_t bytes) {
  if (bytes <= least) return least;
  const size_t step = std::max(std::bit_floor(bytes) / 8, least);
  return (bytes + step - 1) / step * step;
}

bool is_pinned(const void* memory) {
  Attributes found;
  return ask(memory, &found) == CUDA_SUCCESS && found.type == CU_MEMORYTYPE_HOST;
}

bool register_with_driver(int device, void* memory, size_t bytes) {
  char why[sluice_cuda_why];
  const CUcontext context = primary_context(device, why);
  if (!context) return false;
  const Current current(context, why);
  return current &&
         driver().cuMemHostRegister_v2(memory, bytes, host_register_portable) == CUDA_SUCCESS;
}

// Whether the memory may be unmapped: the driver does not know it any more. Registrations outlive
// their context, and what the driver says of that may be out of date. To make a context only for
// this would take longer than the process may have left.
bool unpin(int device, void* memory) {
  Attributes found;
  char why[sluice_cuda_why];
  const CUresult result = ask(memory, &found);
  if (result == CUDA_ERROR_DEINITIALIZED) return true;
  if (result != CUDA_SUCCESS) return false;
  if (found.type != CU_MEMORYTYPE_HOST) return true;
  const CUcontext context = is_active(device) ? primary_context(device, why) : nullptr;
  if (!context) return false;
  const Current current(context, why);
  return current && driver().cuMemHostUnregister(memory) == CUDA_SUCCESS;
}

}  // namespace

void* PinnedPool::reserve(int device, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (calls_ > 0) --calls_;
  const size_t whole = rounded(bytes);
  if (bytes > bound_ || whole > bound_) return nullptr;
  // To unpin memory comes last: the driver waits for its device, which may be long.
  Block* block = find_idle(whole, 2 * whole);
  const bool has_room = pinned_ + whole <= bound_;
  if (!block && has_room) block = make(device, whole);
  if (!block) block = find_idle(whole, bound_);
  if (!block && !has_room && make_room(whole)) block = make(device, whole);
  if (!block) return nullptr;
  if (!is_pinned(block->memory)) {
    if (calls_ > 0 || !pin(device, block->memory, block->bytes)) return nullptr;
    block->device = device;
  }
  block->in_use = true;
  return block->memory;
}

bool PinnedPool::pin(int device, void* memory, size_t bytes) {
  constexpr unsigned most = 10;  // a thousand calls
  const bool done = register_with_driver(device, memory, bytes);
  refusals_ = done ? 0 : std::min(refusals_ + 1, most);
  calls_ = done ? 0 : 1U << refusals_;
  return done;
}

// The smallest idle block that is large enough.
PinnedPool::Block* PinnedPool::find_idle(size_t bytes, size_t most) {
  Block* best = nullptr;
  for (Block* block = blocks_; block; block = block->next) {
    if (block->in_use || block->bytes < bytes || block->bytes > most) continue;
    if (!best || block->bytes < best->bytes) best = block;
  }
  return best;
}

PinnedPool::Block* PinnedPool::make(int device, size_t bytes) {
  if (calls_ > 0) return nullptr;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // The device would go on with the old pages if a child shared these.
  madvise(memory, bytes, MADV_DONTFORK);
  Block* const block = new (std::nothrow) Block{blocks_, memory, bytes, device, false};
  if (!block || !pin(device, memory, bytes)) {
    delete block;
    munmap(memory, bytes);
    return nullptr;
  }
  pinned_ += bytes;
  return blocks_ = block;
}

// Frees idle blocks until so many bytes more may be pinned. False, and none are freed, if that is
// not enough.
bool PinnedPool::make_room(size_t bytes) {
  size_t used = 0;
  for (const Block* block = blocks_; block; block = block->next) {
    if (block->in_use) used += block->bytes;
  }
  if (used + bytes > bound_) return false;
  for (Block** link = &blocks_; *link && pinned_ + bytes > bound_;) {
    (*link)->in_use ? void(link = &(*link)->next) : release(link);
  }
  return true;
}

void PinnedPool::release(Block** link) {
  Block* const block = *link;
  *link = block->next;
  if (unpin(block->device, block->memory)) munmap(block->memory, block->bytes);
  pinned_ -= block->bytes;
  delete block;
}

void PinnedPool::give_back(void* memory) {
  const std::lock_guard lock(mutex_);
  for (Block* block = blocks_; block; block = block->next) {
    if (block->memory == memory) block->in_use = false;
  }
}

void PinnedPool::clear() {
  const std::lock_guard lock(mutex_);
  for (Block** link = &blocks_; *link;) {
    (*link)->in_use ? void(link = &(*link)->next) : release(link);
  }
}

}  // namespace sluice::cuda
