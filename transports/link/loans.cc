// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/loans.h"

#include <new>

#include "src/base/random.h"
#include "transports/little_endian.h"

namespace sluice {

namespace {

constexpr size_t words_of_message = 4, words_of_region = 3;

}  // namespace

std::vector<std::byte> encode(const LentMessage& lent) {
  std::vector<uint64_t> words{lent.carrier, lent.word, lent.word_key, lent.value};
  for (const Region& region : lent.regions) {
    words.insert(words.end(), {region.address, region.bytes, region.key});
  }
  std::vector<std::byte> payload(8 * words.size());
  for (size_t i = 0; i < words.size(); ++i) store64(payload.data() + 8 * i, words[i]);
  return payload;
}

std::optional<LentMessage> decode_lent(const std::string& payload, size_t bytes) {
  const size_t words = payload.size() / 8;
  if (payload.size() % 8 != 0 || words <= words_of_message) return std::nullopt;
  const size_t regions = (words - words_of_message) / words_of_region;
  if (words != words_of_message + regions * words_of_region || regions > most_regions) {
    return std::nullopt;
  }
  const auto* const from = reinterpret_cast<const std::byte*>(payload.data());
  const auto word = [&](size_t at) { return load64(from + 8 * at); };
  LentMessage lent{word(0), word(1), word(2), word(3), {}};
  for (size_t at = words_of_message; at < words; at += words_of_region) {
    const Region region{word(at), word(at + 1), word(at + 2)};
    if (region.bytes == 0 || region.bytes > bytes) return std::nullopt;
    bytes -= region.bytes;
    lent.regions.push_back(region);
  }
  return bytes == 0 ? std::optional(std::move(lent)) : std::nullopt;
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
  // Before the program's stores. A sequentially consistent store and load of a word are a fence,
  // also on processors that order little (STLR and LDAR on ARM).
  word->store(0, std::memory_order_seq_cst);
  (void)word->load(std::memory_order_seq_cst);
  free_.push_back(word);
}

}  // namespace sluice
