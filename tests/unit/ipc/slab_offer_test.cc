// SPDX-License-Identifier: BSD-3-Clause
#include "src/ipc/slab_offer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice {
namespace {

TEST(RankReport, survives_packing) {
  std::vector<std::byte> packed(RankReport::packed_size, std::byte{0xAA});
  RankReport{true, {}}.pack(packed);
  EXPECT_TRUE(RankReport::unpack(packed).is_well);
  RankReport{false, "a copy"}.pack(packed);
  EXPECT_FALSE(RankReport::unpack(packed).is_well);
  EXPECT_EQ(RankReport::unpack(packed).why, "a copy");
  RankReport{false, std::string(500, 'x')}.pack(packed);
  EXPECT_EQ(RankReport::unpack(packed).why, std::string(RankReport::longest_text, 'x'));
}

TEST(SlabOffer, survives_packing) {
  std::vector<std::byte> packed(SlabOffer::packed_size, std::byte{0xAA});
  SlabOffer offer{77, {}, {}};
  for (size_t i = 0; i < offer.handle.size(); ++i) offer.handle[i] = static_cast<char>(i * 3);
  offer.pack(packed);
  EXPECT_EQ(SlabOffer::unpack(packed).slab, 77U);
  EXPECT_EQ(SlabOffer::unpack(packed).handle, offer.handle);
  SlabOffer{0, {}, "no memory"}.pack(packed);
  EXPECT_EQ(SlabOffer::unpack(packed).slab, 0U);
  EXPECT_EQ(SlabOffer::unpack(packed).why, "no memory");
}

}  // namespace
}  // namespace sluice
