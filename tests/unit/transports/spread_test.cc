// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace sluice {
namespace {

size_t sum(const std::vector<Share>& parts) {
  return std::accumulate(parts.begin(), parts.end(), size_t{0},
                         [](size_t all, const Share& each) { return all + each.bytes; });
}

std::string payload_of(const std::vector<Share>& parts) {
  const std::vector<std::byte> bytes = encode(parts);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Spread, EqualRailsGetEqualParts) {
  const auto parts = cut(size_t{256} << 10, {{1, 0}, {2, 0}, {3, 0}, {4, 0}});
  ASSERT_EQ(parts.size(), 4U);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(parts[i].rail, i + 1);
    EXPECT_EQ(parts[i].bytes, 65536U);
  }
}

TEST(Spread, ARailWithMoreQueuedGetsLess) {
  const auto parts = cut(400000, {{1, 100000}, {2, 0}, {3, 600000}});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].rail, 2U);
  EXPECT_NEAR(parts[0].bytes, 250000, 128);
  EXPECT_EQ(parts[1].rail, 1U);
  EXPECT_NEAR(parts[1].bytes, 150000, 128);
}

// All may have fallen silent since.
TEST(Spread, WithoutARailThereIsNoPart) { EXPECT_TRUE(cut(300000, std::vector<Load>()).empty()); }

TEST(Spread, PartsAreNotTooSmall) {
  const auto parts = cut(least_spread, std::vector<Load>(16, Load{7, 0}));
  EXPECT_EQ(parts.size(), least_spread / least_part);
}

TEST(Spread, RandomLoads) {
  const int seed = testing::UnitTest::GetInstance()->random_seed();
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  for (int i = 0; i < 2000; ++i) {
    std::vector<Load> rails(1 + random() % 16);
    for (size_t k = 0; k < rails.size(); ++k) {
      rails[k] = {static_cast<uint32_t>(k + 1), random() % 3 == 0 ? 0 : random() % (4 << 20)};
    }
    const size_t bytes = least_spread + random() % (size_t{2} << 20);
    const auto parts = cut(bytes, rails);
    ASSERT_EQ(sum(parts), bytes) << "seed " << seed;
    size_t lowest = SIZE_MAX, highest = 0;  // what lies where there is a part
    std::vector<bool> used(rails.size() + 1);
    for (const Share& each : parts) {
      ASSERT_GE(each.bytes, parts.size() == 1 ? bytes : least_part - 64);
      ASSERT_FALSE(used[each.rail]);
      used[each.rail] = true;
      lowest = std::min(lowest, rails[each.rail - 1].queued + each.bytes);
      highest = std::max(highest, rails[each.rail - 1].queued + each.bytes);
    }
    ASSERT_LE(highest - lowest, 64 * parts.size());
    const bool most = parts.size() == bytes / least_part;
    for (const Load& each : rails) {
      ASSERT_TRUE(used[each.rail] || most || each.queued + 2 * least_part >= lowest);
    }
    std::vector<Share> back;
    ASSERT_TRUE(decode(payload_of(parts), bytes, &back));
    ASSERT_TRUE(std::ranges::equal(parts, back, [](const Share& a, const Share& b) {
      return a.rail == b.rail && a.bytes == b.bytes;
    }));
  }
}

TEST(Spread, PayloadsThatAreNone) {
  const std::vector<Share> parts{{1, 100}, {2, 50}};
  const std::string good = payload_of(parts);
  std::vector<Share> back;
  EXPECT_TRUE(decode(good, 150, &back));
  EXPECT_FALSE(decode(good, 149, &back));
  EXPECT_FALSE(decode("", 0, &back));
  EXPECT_FALSE(decode(good.substr(1), 150, &back));
  EXPECT_FALSE(decode(payload_of({{1, 150}, {2, 0}}), 150, &back));
}

}  // namespace
}  // namespace sluice
