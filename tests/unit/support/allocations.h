// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that a thread is refused: stands in for the operator new of the whole test program.
#pragma once

#include <cstdint>

namespace sluice::testing {

// While it lives, this thread's allocations number `first` to `first` + `times` - 1, counted from
// 0, throw std::bad_alloc.
class RefusedAllocations {
 public:
  RefusedAllocations(uint32_t first, uint32_t times);
  ~RefusedAllocations();
  RefusedAllocations(const RefusedAllocations&) = delete;
  RefusedAllocations& operator=(const RefusedAllocations&) = delete;

  // Whether the first of them was asked for.
  static bool any();
};

// While it lives, this thread's allocations are granted and not counted: a test's own.
class GrantedAllocations {
 public:
  GrantedAllocations();
  ~GrantedAllocations();
  GrantedAllocations(const GrantedAllocations&) = delete;
  GrantedAllocations& operator=(const GrantedAllocations&) = delete;

 private:
  const bool counted_;
};

}  // namespace sluice::testing
