// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/greeting.h"

#include <algorithm>
#include <cstring>

#include "transports/little_endian.h"

namespace sluice {
namespace {

constexpr char magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 0, 0};
constexpr uint32_t proves_flag = 1, filters_flag = 2, refuses_flag = 4, invites_flag = 8,
                   resumes_flag = 16;
constexpr unsigned rail_shift = 16;

}  // namespace

void Greeting::encode(std::byte* to_bytes) const {
  std::memcpy(to_bytes, magic, sizeof(magic));
  store32(to_bytes + 8, version);
  store32(to_bytes + 12, (proves ? proves_flag : 0) | (filters ? filters_flag : 0) |
                             (refuses ? refuses_flag : 0) | (invites ? invites_flag : 0) |
                             (resumes ? resumes_flag : 0) | rail << rail_shift);
  store_process(to_bytes + 16, from);
  store_process(to_bytes + 32, to);
  std::copy(key.begin(), key.end(), to_bytes + 48);
  store64(to_bytes + 64, window);
  if (proves) std::ranges::copy(nonce, to_bytes + bytes);
  if (!resumes) return;
  std::byte* const last = to_bytes + size() - bytes_of_counts;
  store64(last, counts.sent);
  store64(last + 8, counts.received);
  store64(last + 16, search);
}

size_t Greeting::size_of(const std::byte* from_bytes) {
  const uint32_t flags = load32(from_bytes + 12);
  return ((flags & proves_flag) != 0 ? bytes_with_proof : bytes) +
         ((flags & resumes_flag) != 0 ? bytes_of_counts : 0);
}

bool Greeting::may_begin(const std::byte* from_bytes, size_t count) {
  return std::memcmp(from_bytes, magic, std::min(count, sizeof(magic))) == 0;
}

bool Greeting::decode(const std::byte* from_bytes) {
  if (std::memcmp(from_bytes, magic, sizeof(magic)) != 0) return false;
  version = load32(from_bytes + 8);
  from = load_process(from_bytes + 16);
  to = load_process(from_bytes + 32);
  std::copy_n(from_bytes + 48, key.size(), key.begin());
  window = load64(from_bytes + 64);
  const uint32_t flags = load32(from_bytes + 12);
  proves = (flags & proves_flag) != 0;
  filters = (flags & filters_flag) != 0;
  refuses = (flags & refuses_flag) != 0;
  invites = (flags & invites_flag) != 0;
  resumes = (flags & resumes_flag) != 0;
  rail = flags >> rail_shift;
  if (proves) std::copy_n(from_bytes + bytes, nonce.size(), nonce.begin());
  if (!resumes) return true;
  const std::byte* const last = from_bytes + size() - bytes_of_counts;
  counts = {load64(last), load64(last + 8)};
  search = load64(last + 16);
  return true;
}

}  // namespace sluice
