// SPDX-License-Identifier: BSD-3-Clause
//
// Rails that are encrypted, and a process that lacks memory when they are made: whatever it is that
// cannot be had, no payload goes in clear, and nobody waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <new>
#include <optional>

#include "tests/unit/support/allocations.h"
#include "tests/unit/support/sweep.h"
#include "tests/unit/transports/tls_rig.h"
#include "tests/unit/transports/wiretap.h"

namespace sluice::testing {
namespace {

TcpOptions encrypted() {
  static const auto filters = tls_filters();
  static const auto prover = tls_prover();
  TcpOptions options;
  options.streams = 2;
  options.interfaces = "127.0.0.0/8";
  options.filter = filters;
  options.prover = prover;
  return options;
}

// Two ranks, of which rank 0 connects to rank 1 past a tap.
class TappedRanks {
 public:
  TappedRanks() : ranks_(tcp(encrypted()), 2), tap_(address_of(ranks_.at(1)).entries.front()) {
    AddressBlob blob = address_of(ranks_.at(1));
    blob.entries = {tap_.entry()};
    auto opened = ranks_.at(0).open({Ranks::process(0), 1},
                                    {Ranks::process(1), blob.encode(), Ranks::label(1)});
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    channel_ = std::move(*opened);
    (void)ranks_.channel(1, 0);
  }
  // Both send a message, and receive one: rank 0 of so many bytes, rank 1 a short one. (So nobody
  // waits for rank 1's on a rail.) What is posted finds its memory. False if that does not come to
  // an end.
  bool exchange(uint32_t call, size_t bytes) {
    std::optional<GrantedAllocations> own(std::in_place);
    Messages messages;
    add(messages, {call, 0, 0, 0}, bytes).fill().send(*channel_);
    add(messages, {call, 0, 0, 0}, 8).fill().send(ranks_.channel(1, 0));
    add(messages, {call, 0, 0, 0}, 8).receive(*channel_);
    add(messages, {call, 0, 0, 0}, bytes).receive(ranks_.channel(1, 0));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto is_late = [&] { return std::chrono::steady_clock::now() > end; };
    const std::function<bool()> is_over = [&] {
      const GrantedAllocations taps;
      tap_.pass_on();
      return is_late() || Ranks::all_done(messages);
    };
    own.reset();
    while (!drives_to_the_end(is_over)) {
    }
    return !is_late();
  }
  // Whether any of those bytes went past in clear.
  bool has_heard(uint32_t call, size_t bytes) const {
    const Message message({call, 0, 0, 0}, bytes);
    std::array<std::byte, 64> part;
    for (size_t at = 0; at + part.size() <= bytes; at += bytes / 8) {
      for (size_t i = 0; i < part.size(); ++i) part[i] = message.expected(at + i);
      if (tap_.has_heard(part)) return true;
    }
    return false;
  }
  std::string carrier() { return channel_->carrier(); }

 private:
  bool drives_to_the_end(const std::function<bool()>& is_over) try {
    return ranks_.drive(is_over);
  } catch (const std::bad_alloc&) {
    return false;
  }

  Ranks ranks_;
  Wiretap tap_;
  std::unique_ptr<Channel> channel_;
};

// Exchanges go right, or end with an error on both sides.
TEST(RailsMemory, NothingGoesInClear) {
  if (!describe_tls(tls_options().folder).ok()) GTEST_SKIP() << "built without OpenSSL?";
  constexpr size_t bytes = 100'000;
  constexpr uint32_t least = 10, most = 5000;  // exchanges, until the rails are there
  bool any = true;
  for (uint32_t refused = 0; any; refused += sweep(1U, 2U, 2U)) {
    SCOPED_TRACE("without allocation " + std::to_string(refused));
    TappedRanks ranks;
    ASSERT_TRUE(ranks.exchange(1, 8));
    uint32_t call = 2;
    {
      const RefusedAllocations refuses(refused, 1);
      const auto is_over = [&] { return RefusedAllocations::any() || ranks.carrier() == "tls*2"; };
      for (; call < least || (call < most && !is_over()); ++call) {
        ASSERT_TRUE(ranks.exchange(call, bytes));
      }
      any = RefusedAllocations::any();
    }
    while (call-- > 2) ASSERT_FALSE(ranks.has_heard(call, bytes));
    EXPECT_TRUE(any || ranks.carrier() == "tls*2") << ranks.carrier();
  }
}

}  // namespace
}  // namespace sluice::testing
