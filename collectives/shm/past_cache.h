// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of what no cache will hold until it is read again.
#pragma once

#include <cstddef>

namespace sluice {

// Whether so much data, of all ranks of a host together, is more than its last level of cache.
bool outgrows_cache(size_t bytes);

// As std::memcpy, but what is written goes past the caches: it need not be read from memory before
// it is overwritten, and drives nothing else out. (An alltoall of two ranks with blocks of 8 or 16
// MB takes 0.85 to 0.9 of the time. What the cache holds takes longer.)
void copy_past_cache(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace sluice
