// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/scratch.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <new>
#include <utility>

namespace sluice::cuda {
namespace {

constexpr size_t least = size_t{64} << 10;

// Sizes in steps of an eighth, so that memory serves uses of similar size.
size_t rounded(size_t bytes) {
  if (bytes <= least) return least;
  const size_t step = std::max(std::bit_floor(bytes) / 8, least);
  return (bytes + step - 1) / step * step;
}

constinit ScratchPool pool;

}  // namespace

ScratchPool& scratch() { return pool; }

void* ScratchPool::allocate(const SluiceCudaPlace& place, size_t bytes, char* why) {
  const CUcontext context = find_context(place, why);
  return context ? allocate(context, bytes, why) : nullptr;
}

void* ScratchPool::allocate(CUcontext context, size_t bytes, char* why) {
  const std::lock_guard lock(mutex_);
  drop_gone();
  const size_t whole = bytes > bound_ ? bytes : std::min(rounded(bytes), bound_);
  const bool has_room = whole <= bound_ && held_ <= bound_ - whole;
  // To free memory comes last: the driver waits for its device, which may be long.
  Block* block = find_idle(context, whole, 2 * whole);
  if (!block && has_room) block = make(context, whole, why);
  if (!block && !has_room) block = find_idle(context, whole, bound_);
  if (!block && !has_room) {
    if (make_room(whole)) {
      block = make(context, whole, why);
    } else {
      std::snprintf(why, sluice_cuda_why,
                    "%zu bytes of device scratch are more than SLUICE_CUDA_SCRATCH allows (%zu, of "
                    "which %zu are held)",
                    bytes, bound_, held_);
    }
  }
  if (!block) return nullptr;
  block->state = State::in_use;
  return reinterpret_cast<void*>(static_cast<uintptr_t>(block->canary.address));
}

// The smallest idle block that is large enough.
ScratchPool::Block* ScratchPool::find_idle(CUcontext context, size_t bytes, size_t most) {
  Block* best = nullptr;
  for (Block* block = blocks_; block; block = block->next) {
    if (block->state != State::idle || block->context != context) continue;
    if (block->bytes < bytes || block->bytes > most) continue;
    if (!best || block->bytes < best->bytes) best = block;
  }
  return best;
}

ScratchPool::Block* ScratchPool::make(CUcontext context, size_t bytes, char* why) {
  CUdeviceptr memory = 0;
  const Current current(context, why);
  if (!current || !is_success("cuMemAlloc", driver().cuMemAlloc_v2(&memory, bytes), why)) {
    return nullptr;
  }
  auto* const block =
      new (std::nothrow) Block{blocks_, context, make_canary_of(memory), bytes, State::idle};
  if (!block || block->canary.id == 0) {
    delete block;
    driver().cuMemFree_v2(memory);
    std::snprintf(why, sluice_cuda_why, "no memory to keep device scratch");
    return nullptr;
  }
  held_ += bytes;
  return blocks_ = block;
}

// Frees idle blocks until so many bytes more may be held. False, and none are freed, if that is not
// enough.
bool ScratchPool::make_room(size_t bytes) {
  size_t used = 0;
  for (const Block* block = blocks_; block; block = block->next) {
    if (block->state != State::idle) used += block->bytes;
  }
  if (bytes > bound_ || used > bound_ - bytes) return false;
  for (Block** link = &blocks_; *link && held_ + bytes > bound_;) {
    (*link)->state != State::idle ? void(link = &(*link)->next) : free(link);
  }
  return true;
}

// (A block in use stays listed, so that its user can release it.)
void ScratchPool::drop_gone() {
  for (Block** link = &blocks_; *link;) {
    Block* const block = *link;
    const bool is_there = is_alive(block->canary, block->context);
    if (!is_there) held_ -= std::exchange(block->bytes, 0);
    if (is_there || block->state == State::in_use) {
      link = &block->next;
    } else {
      *link = block->next;
      delete block;
    }
  }
}

void ScratchPool::free(Block** link) {
  char why[sluice_cuda_why];
  Block* const block = *link;
  *link = block->next;
  held_ -= block->bytes;
  const Current current(block->context, why);
  if (current) driver().cuMemFree_v2(block->canary.address);
  delete block;
}

void ScratchPool::set_state(const void* memory, State state) {
  const std::lock_guard lock(mutex_);
  for (Block* block = blocks_; block; block = block->next) {
    if (block->canary.address == address_of(memory)) block->state = state;
  }
}

void ScratchPool::release(void* memory) { set_state(memory, State::idle); }

void ScratchPool::abandon(void* memory) { set_state(memory, State::abandoned); }

void ScratchPool::clear() {
  const std::lock_guard lock(mutex_);
  drop_gone();
  for (Block** link = &blocks_; *link;) {
    (*link)->state != State::idle ? void(link = &(*link)->next) : free(link);
  }
}

}  // namespace sluice::cuda
