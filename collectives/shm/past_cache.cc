// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/shm/past_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace sluice {
namespace {

constexpr size_t usual_cache = size_t{32} << 20;

// As the kernel knows it, in KB; 0 if it does not. (The C library may take what all processors of a
// machine have together for one cache.)
size_t kernel_told() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(
      std::fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re"), std::fclose);
  char text[32] = "";
  if (!file || !std::fgets(text, sizeof(text), file.get())) return 0;
  return std::strtoull(text, nullptr, 10) << 10;
}

size_t library_told() {
  const long told = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return told > 0 ? static_cast<size_t>(told) : 0;
}

size_t last_level_cache() {
  static constinit std::atomic<size_t> known{0};
  size_t bytes = known.load(std::memory_order_relaxed);
  if (bytes > 0) return bytes;
  bytes = kernel_told();
  if (bytes == 0) bytes = library_told();
  if (bytes == 0) bytes = usual_cache;
  known.store(bytes, std::memory_order_relaxed);
  return bytes;
}

}  // namespace

bool outgrows_cache(size_t bytes) { return bytes > last_level_cache(); }

#ifdef __SSE2__
void copy_past_cache(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t line = 64, vector = sizeof(__m128i);
  const size_t head = std::min(bytes, (line - reinterpret_cast<uintptr_t>(to) % line) % line);
  std::memcpy(to, from, head);
  const size_t past = (bytes - head) / line * line;
  for (size_t at = head; at < head + past; at += line) {
    __m128i data[line / vector];
    std::memcpy(data, from + at, line);
    auto* const place = reinterpret_cast<__m128i*>(to + at);
    for (size_t i = 0; i < line / vector; ++i) _mm_stream_si128(place + i, data[i]);
  }
  _mm_sfence();  // before this rank says that it is done
  std::memcpy(to + head + past, from + head + past, bytes - head - past);
}
#else
void copy_past_cache(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

}  // namespace sluice
