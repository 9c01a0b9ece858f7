// SPDX-License-Identifier: BSD-3-Clause
//
// Payload copies that avoid slow string moves. The C library and the kernel copy mostly with string
// moves (rep movsb). On some processors, among them AMD's with fsrm, these take 5 to 30 times as
// long if the target begins a few bytes further into its page than the source (glibc bug 30994;
// measured: offsets of 1 to 31 bytes, copies of 2 KB or more). This is common: malloc's large
// buffers begin 16 bytes into a page, slots at the start of one. Offsets of up to a cache line
// count as slow, because processors differ. (Alltoall of 1 MB, 2 ranks, the target 16 bytes further
// into its page: 0.26 ms; without this 0.69 ms, Open MPI 1.3 ms.) On processors without the
// problem, vector copies take at most a quarter longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice {

constexpr size_t copy_page = 4096;

// Whether string moves between these addresses may be slow. The addresses may belong to two
// processes.
constexpr bool is_slow_by_string_moves(uint64_t to, uint64_t from, size_t bytes) {
  constexpr size_t shortest = 2048;
  constexpr uint64_t line = 64;
  return bytes >= shortest && (to - from) % copy_page - 1 < line - 1;
}

// The first byte at or after `memory` that has the page offset of `address`, so that copies between
// the two are fast. It is less than a page further.
inline std::byte* place_like(std::byte* memory, uint64_t address) {
  return memory + (address - reinterpret_cast<uintptr_t>(memory)) % copy_page;
}

// Copies without string moves. The ranges must not overlap.
void copy_by_vectors(std::byte* to, const std::byte* from, size_t bytes);

// Like std::memcpy, but about as fast for any alignment of the two.
inline void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (is_slow_by_string_moves(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from),
                              bytes)) {
    copy_by_vectors(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace sluice
