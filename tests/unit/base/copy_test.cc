// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice {
namespace {

constexpr size_t page = 4096;

TEST(Copy, IsSlowWhereTheTargetIsALittleFurtherIntoItsPage) {
  for (const uint64_t from : {uint64_t{0}, uint64_t{4090}, uint64_t{7} << 60}) {
    EXPECT_FALSE(is_slow_by_string_moves(from, from, page));
    EXPECT_FALSE(is_slow_by_string_moves(from + 9 * page, from, page));
    EXPECT_TRUE(is_slow_by_string_moves(from + 9 * page + 1, from, page));
    EXPECT_TRUE(is_slow_by_string_moves(from + 31, from + 8 * page, page));
    EXPECT_TRUE(is_slow_by_string_moves(from + 63, from, page));
    EXPECT_FALSE(is_slow_by_string_moves(from + 16, from, 64)) << "no string move";
    EXPECT_FALSE(is_slow_by_string_moves(from + 64, from, page));
    EXPECT_FALSE(is_slow_by_string_moves(from, from + 16, page));
  }
}

TEST(Copy, CopiesAllOfItAndNothingElse) {
  std::vector<std::byte> from(5 * page), to(5 * page);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 251);
  std::byte* const begin =
      to.data() + page -
      (reinterpret_cast<uintptr_t>(to.data()) - reinterpret_cast<uintptr_t>(from.data())) %
          page;  // same page offset as `from`
  for (size_t shift = 0; shift < 70; ++shift) {
    for (const size_t bytes : {0UL, 1UL, 63UL, 64UL, 2047UL, 2048UL, 2049UL, 2111UL, 3 * page}) {
      for (const auto copy : {copy_bytes, copy_by_vectors}) {
        std::ranges::fill(to, std::byte{255});
        copy(begin + shift, from.data(), bytes);
        ASSERT_TRUE(std::equal(begin + shift, begin + shift + bytes, from.data())) << shift;
        ASSERT_EQ(static_cast<size_t>(std::ranges::count(to, std::byte{255})), to.size() - bytes);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
