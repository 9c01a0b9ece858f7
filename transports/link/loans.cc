// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/loans.h"

#include <new>

#include "src/base/random.h"
#include "transports/little_endian.h"

namespace sluice {

std::vector<std::byte> encode(const LentMessage& lent) {
  std::vector<std::byte> payload(16 * (1 + lent.regions.size()));
  std::byte* to = payload.data();
  const auto add = [&](uint64_t first, uint64_t second) {
    store64(to, first);
    store64(to + 8, second);
    to += 16;
  };
  add(lent.word, lent.value);
  for (const Region& region : lent.regions) add(region.address, region.bytes);
  return payload;
}

std::optional<LentMessage> decode_lent(const std::string& payload, size_t bytes) {
  const size_t pairs = payload.size() / 16;
  if (payload.size() % 16 != 0 || pairs < 2 || pairs > 1 + most_regions) return std::nullopt;
  const auto* const from = reinterpret_cast<const std::byte*>(payload.data());
  LentMessage lent{load64(from), load64(from + 8), {}};
  for (size_t pair = 1; pair < pairs; ++pair) {
    const Region region{load64(from + 16 * pair), load64(from + 16 * pair + 8)};
    if (region.bytes == 0 || region.bytes > bytes) return std::nullopt;
    bytes -= region.bytes;
    lent.regions.push_back(region);
  }
  return bytes == 0 ? std::optional(std::move(lent)) : std::nullopt;
}

// A sequentially consistent store and load of a word are a fence, also on processors that order
// little (STLR and LDAR on ARM). The thread sanitizer knows no others.
void Loans::set_and_fence(LoanWord& word, uint64_t value) {
  word.store(value, std::memory_order_seq_cst);
  (void)word.load(std::memory_order_seq_cst);
}

bool Loans::make() try {
  if (!draw_random(&latest_, sizeof(latest_)).ok()) return false;
  free_.reserve(most);
  words_ = std::make_unique<LoanWord[]>(most);
  for (size_t i = 0; i < most; ++i) free_.push_back(&words_[i]);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

LoanWord* Loans::begin() {
  if ((!words_ && !make()) || free_.empty()) return nullptr;
  LoanWord* const word = free_.back();
  free_.pop_back();
  if (++latest_ == 0) ++latest_;
  word->store(latest_, std::memory_order_release);
  return word;
}

void Loans::end(LoanWord* word) {
  set_and_fence(*word, 0);  // before the program's stores
  free_.push_back(word);
}

}  // namespace sluice
