// SPDX-License-Identifier: BSD-3-Clause
//
// Where a call's data is placed: in the program's memory, or in staging memory, packed and unpacked
// as the engine asks for it.
#include "src/memory/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice {
namespace {

class NoCopies final : public CopyWait {
  Status wait_for_copy(const IsDone&, const std::string& what) override {
    return {Code::internal, what};
  }
};

std::vector<std::byte> numbered(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 % 251);
  return bytes;
}

class PlacementTest : public testing::Test {
 protected:
  static constexpr size_t elements = 20000;  // more than a grain
  static constexpr size_t stride = 5;        // of an element's three bytes, 0 and 2

  static const ElementType& dense() {
    static const Layout layout = Layout::run(2);
    static const ElementType type{2, 0, 2, &layout, true};
    return type;
  }
  static const ElementType& gappy() {
    static const Layout layout = Layout::run(1).repeated(2, 2);
    static const ElementType type{2, 0, stride, &layout, false};
    return type;
  }
  // What packing `count` gappy elements gives.
  static std::vector<std::byte> packed(const std::vector<std::byte>& memory, size_t count) {
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < count; ++i) {
      bytes.push_back(memory[i * stride]);
      bytes.push_back(memory[i * stride + 2]);
    }
    return bytes;
  }

  UnplacedCall call_;
  StagingPair staging_;
  NoCopies wait_;
  Placement placement_{call_, staging_, wait_};
};

TEST_F(PlacementTest, DenseSidesStayWhereTheyAre) {
  std::vector<std::byte> in = numbered(24), out(24);
  call_.input = {in.data(), &dense(), 3, 4, {}, {}};
  call_.output = {out.data(), &dense(), 1, 12, {}, {}};
  ASSERT_TRUE(placement_.begin().ok());
  EXPECT_EQ(call_.call.input.base, in.data());
  EXPECT_EQ(call_.call.input.count, 8U);
  EXPECT_EQ(call_.call.output.base, out.data());
  EXPECT_FALSE(call_.call.input.source || call_.call.output.sink);
  EXPECT_TRUE(placement_.end().ok());
}

TEST_F(PlacementTest, AnInputWithGapsIsPackedPieceByPiece) {
  const std::vector<std::byte> in = numbered(elements * stride);
  call_.input = {in.data(), &gappy(), 1, elements, {}, {}};
  ASSERT_TRUE(placement_.begin().ok());
  View& view = call_.call.input;
  ASSERT_TRUE(view.source);
  const size_t half = elements + 1;
  view.source->move(half, 2 * elements - half);
  view.source->move(0, half);
  EXPECT_EQ(std::vector(view.base, view.base + 2 * elements), packed(in, elements));
  EXPECT_TRUE(placement_.end().ok());
}

TEST_F(PlacementTest, AnOutputWithGapsIsUnpackedAndTheGapsStay) {
  const std::vector<std::byte> before = numbered(elements * stride);
  std::vector<std::byte> out = before;
  call_.output = {out.data(), &gappy(), 1, elements, {}, {}};
  ASSERT_TRUE(placement_.begin().ok());
  View& view = call_.call.output;
  ASSERT_TRUE(view.sink);
  const std::vector<std::byte> result(2 * elements, std::byte{255});
  std::ranges::copy(result, view.base);
  view.sink->move(0, elements);
  ASSERT_TRUE(placement_.end().ok());
  EXPECT_EQ(packed(out, elements), result);
  for (size_t i = 0; i < out.size(); ++i) {
    const bool is_gap = i % stride != 0 && i % stride != 2;
    EXPECT_TRUE(!is_gap || out[i] == before[i]) << "byte " << i;
  }
}

// A block without elements may be anywhere.
TEST_F(PlacementTest, DenseBlocksCountFromTheLowest) {
  std::vector<std::byte> out(64);
  const int counts[] = {3, 0, 2}, displacements[] = {10, -1000, 4};
  call_.output = {out.data(), &dense(), 3, 0, counts, displacements};
  ASSERT_TRUE(placement_.begin().ok());
  const View& view = call_.call.output;
  EXPECT_EQ(view.base, out.data() + 8);
  EXPECT_EQ(view.block(0).offset, 12U);
  EXPECT_EQ(view.block(0).count, 6U);
  EXPECT_EQ(view.block(1).count, 0U);
  EXPECT_EQ(view.block(2).offset, 0U);
  EXPECT_TRUE(placement_.end().ok());
}

TEST_F(PlacementTest, BlocksWithGapsArePackedOneAfterAnother) {
  const std::vector<std::byte> in = numbered(100);
  const int64_t counts[] = {2, 0, 3}, displacements[] = {9, 0, 1};
  call_.input = {in.data(), &gappy(), 3, 0, counts, displacements};
  ASSERT_TRUE(placement_.begin().ok());
  const View& view = call_.call.input;
  EXPECT_EQ(view.block(2).offset, 4U);
  view.source->move(0, 10);
  std::vector<std::byte> expected = packed({in.begin() + 45, in.end()}, 2);
  const std::vector<std::byte> last = packed({in.begin() + 5, in.end()}, 3);
  expected.insert(expected.end(), last.begin(), last.end());
  EXPECT_EQ(std::vector(view.base, view.base + 10), expected);
  EXPECT_TRUE(placement_.end().ok());
}

// The output may overwrite the program's memory at once.
TEST_F(PlacementTest, AnInputThatIsSetAsideIsCopiedAtOnce) {
  const std::vector<std::byte> before = numbered(24);
  std::vector<std::byte> both = before;
  call_.input = {both.data(), &dense(), 1, 12, {}, {}};
  call_.output = call_.input;
  call_.set_aside = true;
  ASSERT_TRUE(placement_.begin().ok());
  std::ranges::fill(both, std::byte{});
  const View& view = call_.call.input;
  EXPECT_EQ(call_.call.output.base, both.data());
  EXPECT_EQ(std::vector(view.base, view.base + 24), before);
  EXPECT_TRUE(placement_.end().ok());
}

// (At a broadcast's root.)
TEST_F(PlacementTest, AFilledOutputIsASource) {
  const std::vector<std::byte> data = numbered(elements * stride);
  call_.output = {data.data(), &gappy(), 1, elements, {}, {}};
  call_.filled = true;
  ASSERT_TRUE(placement_.begin().ok());
  const View& view = call_.call.output;
  ASSERT_TRUE(view.source);
  EXPECT_FALSE(view.sink);
  view.source->move(0, 2 * elements);
  EXPECT_EQ(std::vector(view.base, view.base + 2 * elements), packed(data, elements));
  EXPECT_TRUE(placement_.end().ok());
}

TEST(StagingTest, LargeMemoryServesTheNextCallOfTheProcess) {
  constexpr size_t large = size_t{1} << 20;
  Staging one, another;
  const std::byte* const memory = one.reserve(large, {});
  ASSERT_TRUE(memory);
  one.trim();
  EXPECT_EQ(another.reserve(large, {}), memory);
}

TEST(NumbersTest, AreIntsOrWide) {
  const int narrow[] = {1, -2, 3};
  const int64_t wide[] = {1, -2, int64_t{1} << 40};
  const Numbers some = narrow, others = wide;
  EXPECT_EQ(some[1], -2);
  EXPECT_EQ(others[2], int64_t{1} << 40);
  EXPECT_TRUE(some.begin_alike(others, 2));
  EXPECT_FALSE(some.begin_alike(others, 3));
  EXPECT_EQ(others.from(2)[0], int64_t{1} << 40);
  std::byte memory[sizeof wide];
  EXPECT_EQ(others.copied_to(memory, 3)[2], int64_t{1} << 40);
}

}  // namespace
}  // namespace sluice
