// SPDX-License-Identifier: BSD-3-Clause
#include "src/ipc/slab_vote.h"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

// Where members lie when packed. (Ranks of one team run the same version of the library, on
// processors of one byte order.)
constexpr size_t at_signature = 0, at_blocks = 4, at_bytes = 8, at_type = 16, at_operation = 17,
                 at_lack = 18, at_slab = 24, at_device = 32, at_most = 48, at_longest = 56;
constexpr size_t at_text = 1;                    // of a report
constexpr size_t at_offered = 0, at_handle = 8;  // of an offer, with a handle or a text

template <typename T>
void put(const T& value, size_t at, std::span<std::byte> bytes) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

template <typename T>
void get(T* value, size_t at, std::span<const std::byte> bytes) {
  std::memcpy(value, bytes.data() + at, sizeof(*value));
}

// To the end, which is a zero.
void put_text(const std::string& text, std::span<std::byte> bytes) {
  std::memcpy(bytes.data(), text.data(), std::min(text.size(), bytes.size() - 1));
}

std::string get_text(std::span<const std::byte> bytes) {
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  return {text, strnlen(text, bytes.size())};
}

void clear(std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{}); }

}  // namespace

void SlabVote::pack(std::span<std::byte> to) const {
  clear(to.first(packed_size));
  put(facts.signature, at_signature, to);
  put(facts.blocks, at_blocks, to);
  put(facts.bytes, at_bytes, to);
  put(facts.type, at_type, to);
  put(facts.operation, at_operation, to);
  put(lack, at_lack, to);
  put(slab, at_slab, to);
  put(device, at_device, to);
  put(bytes, at_most, to);
  put(longest, at_longest, to);
}

SlabVote SlabVote::unpack(std::span<const std::byte> from) {
  SlabVote vote;
  get(&vote.facts.signature, at_signature, from);
  get(&vote.facts.blocks, at_blocks, from);
  get(&vote.facts.bytes, at_bytes, from);
  get(&vote.facts.type, at_type, from);
  get(&vote.facts.operation, at_operation, from);
  get(&vote.lack, at_lack, from);
  get(&vote.slab, at_slab, from);
  get(&vote.device, at_device, from);
  get(&vote.bytes, at_most, from);
  get(&vote.longest, at_longest, from);
  return vote;
}

const char* describe(SlabVote::Lack lack) {
  using Lack = SlabVote::Lack;
  switch (lack) {
    case Lack::nothing:
      break;
    case Lack::on_host:
      return "its data is not dense on one device";
    case Lack::unknown:
      return "the driver can't tell where its data is";
    case Lack::module:
      return "the CUDA module can't be used there";
    case Lack::context:
      return "its data can't be used by other processes";
    case Lack::kernels:
      return "its device has no kernel for such a reduction";
    case Lack::busy:
      return "another thread there is in such a call";
    case Lack::failed:
      return "a copy has failed on its device";
    case Lack::small:
      return "the call is small";
  }
  return "";
}

SlabBallot count_votes(std::span<const SlabVote> votes, std::span<const uint64_t> connected,
                       size_t least) {
  using Result = SlabBallot::Result;
  const auto is_other = [&](const SlabVote& vote) { return vote.facts != votes[0].facts; };
  const auto lacks = [](const SlabVote& vote) { return vote.lack != SlabVote::Lack::nothing; };
  const auto rank_of = [&](auto found) { return static_cast<Rank>(found - votes.begin()); };
  if (const auto other = std::ranges::find_if(votes, is_other); other != votes.end()) {
    return {Result::mismatch, SlabVote::Lack::nothing, rank_of(other), 0};
  }
  if (const auto one = std::ranges::find_if(votes, lacks); one != votes.end()) {
    return {Result::stay, one->lack, rank_of(one), 0};
  }
  if (std::ranges::max(votes, {}, &SlabVote::bytes).bytes < least) {
    return {Result::stay, SlabVote::Lack::small, 0, 0};
  }
  const bool is_connected = std::ranges::equal(votes, connected, {}, &SlabVote::slab);
  const uint64_t longest = std::ranges::max(votes, {}, &SlabVote::longest).longest;
  return {is_connected ? Result::go : Result::connect, SlabVote::Lack::nothing, 0, longest};
}

bool SlabSchedule::is_due() {
  if (++calls_ < next_) return false;
  next_ += always_ ? 1 : std::min(next_, longest_gap);
  return true;
}

void SlabSchedule::learn(Outcome outcome) {
  const bool went = outcome == Outcome::went;
  if (outcome == Outcome::passing) {
    next_ = calls_ + 1;
    return;
  }
  refusals_ = went ? 0 : refusals_ + 1;
  const bool changes = always_ ? refusals_ == most_refusals : went;
  if (!changes) return;
  always_ = !always_;
  calls_ = refusals_ = 0;
  next_ = 1;
}

void RankReport::pack(std::span<std::byte> to) const {
  clear(to.first(packed_size));
  put(static_cast<uint8_t>(is_well), 0, to);
  put_text(why, to.subspan(at_text, packed_size - at_text));
}

RankReport RankReport::unpack(std::span<const std::byte> from) {
  return {from[0] != std::byte{}, get_text(from.subspan(at_text, packed_size - at_text))};
}

void SlabOffer::pack(std::span<std::byte> to) const {
  clear(to.first(packed_size));
  put(slab, at_offered, to);
  if (slab != 0) return put(handle, at_handle, to);
  put_text(why, to.subspan(at_handle, packed_size - at_handle));
}

SlabOffer SlabOffer::unpack(std::span<const std::byte> from) {
  SlabOffer offer;
  get(&offer.slab, at_offered, from);
  if (offer.slab != 0) {
    get(&offer.handle, at_handle, from);
  } else {
    offer.why = get_text(from.subspan(at_handle, packed_size - at_handle));
  }
  return offer;
}

}  // namespace sluice
