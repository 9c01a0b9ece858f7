// SPDX-License-Identifier: BSD-3-Clause
//
// Makes a thread's allocations fail: replaces operator new in the whole test program.
#pragma once

#include <cstdint>

namespace sluice::testing {

// During its lifetime, this thread's allocations number `first` to `first` + `times` - 1, counted
// from 0, throw std::bad_alloc.
class RefusedAllocations {
 public:
  RefusedAllocations(uint32_t first, uint32_t times);
  ~RefusedAllocations();
  RefusedAllocations(const RefusedAllocations&) = delete;
  RefusedAllocations& operator=(const RefusedAllocations&) = delete;

  // Whether allocation number `first` was requested.
  static bool any();
};

// During its lifetime, this thread's allocations succeed and are not counted: the test's own.
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
