// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of payload. The C library and the kernel make most of theirs by string moves (rep movsb),
// and some processors, AMD's with fsrm among them, take 5 to 30 times as long for these where the
// target begins a few bytes further into its page than the source does (glibc's bug 30994;
// measured: 1 to 31 bytes, from 2 KB on). That is not rare: what malloc maps for large buffers
// begins 16 bytes behind a page's begin, and slots begin at a page's. A whole line is taken for
// slow, for there are other processors; where none is, vectors take a quarter longer at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice {

constexpr size_t copy_page = 4096;

// Whether string moves may be that slow, from address to address: of this process, or of two.
constexpr bool is_slow_by_string_moves(uint64_t to, uint64_t from, size_t bytes) {
  constexpr size_t shortest = 2048;
  constexpr uint64_t line = 64;
  return bytes >= shortest && (to - from) % copy_page - 1 < line - 1;
}

// The first place in memory that is as far into its page as the address, so that copies between
// them are not; less than a page on.
inline std::byte* place_like(std::byte* memory, uint64_t address) {
  return memory + (address - reinterpret_cast<uintptr_t>(memory)) % copy_page;
}

// Without string moves. The two do not overlap.
void copy_by_vectors(std::byte* to, const std::byte* from, size_t bytes);

// As std::memcpy, at much the same speed wherever the two lie.
inline void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (is_slow_by_string_moves(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from),
                              bytes)) {
    copy_by_vectors(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace sluice
