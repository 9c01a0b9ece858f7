// SPDX-License-Identifier: BSD-3-Clause
//
// Integers as they are sent and published: little-endian.
#pragma once

#include <endian.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transports/transport.h"

namespace sluice {

inline void store32(std::byte* to, uint32_t value) {
  value = htole32(value);
  std::memcpy(to, &value, sizeof(value));
}
inline void store64(std::byte* to, uint64_t value) {
  value = htole64(value);
  std::memcpy(to, &value, sizeof(value));
}
inline uint32_t load32(const std::byte* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof(value));
  return le32toh(value);
}
inline uint64_t load64(const std::byte* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof(value));
  return le64toh(value);
}

inline void store_process(std::byte* to, const ProcessId& process) {
  store64(to, process.high);
  store64(to + 8, process.low);
}
inline ProcessId load_process(const std::byte* from) { return {load64(from), load64(from + 8)}; }

}  // namespace sluice
