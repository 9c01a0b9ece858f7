// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/support/allocations.h"

#include <cstdlib>
#include <new>

namespace {

struct Refusals {
  bool count = false;
  uint32_t asked = 0, first = 0, times = 0;
};
constinit thread_local Refusals refusals;

}  // namespace

void* operator new(size_t bytes) {
  if (refusals.count) {
    const uint32_t number = refusals.asked++;
    if (number >= refusals.first && number - refusals.first < refusals.times)
      throw std::bad_alloc();
  }
  void* const memory = std::malloc(bytes > 0 ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
// (Otherwise the address sanitizer's own version is used, and its memory is not from malloc.)
void* operator new(size_t bytes, const std::nothrow_t&) noexcept try {
  return operator new(bytes);
} catch (const std::bad_alloc&) {
  return nullptr;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace sluice::testing {

RefusedAllocations::RefusedAllocations(uint32_t first, uint32_t times) {
  refusals = {true, 0, first, times};
}

RefusedAllocations::~RefusedAllocations() { refusals.count = false; }

GrantedAllocations::GrantedAllocations() : counted_(refusals.count) { refusals.count = false; }

GrantedAllocations::~GrantedAllocations() { refusals.count = counted_; }

bool RefusedAllocations::any() { return refusals.asked > refusals.first; }

}  // namespace sluice::testing
