// SPDX-License-Identifier: BSD-3-Clause
//
// Random layouts, compared with lists of the places of all their bytes.
#include "src/memory/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace sluice {
namespace {

using Places = std::vector<ptrdiff_t>;

struct Both {
  Layout layout;
  Places places;
};

class Builder {
 public:
  explicit Builder(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return random_() % n; }

  Both build(int depth) {
    if (depth == 0) return run(below(20));
    switch (below(3)) {
      case 0:
        return repeat(build(depth - 1), below(6));
      case 1:
        return repeat(repeat(run(1 + below(9)), 1 + below(9)), 1 + below(5));
      default:
        return list(depth);
    }
  }

 private:
  Both run(size_t bytes) {
    Places places(bytes);
    std::iota(places.begin(), places.end(), 0);
    return {Layout::run(bytes), places};
  }

  // Strides that make elements adjacent, spaced, or descending.
  Both repeat(const Both& part, size_t n) {
    const auto [low, high] = std::minmax_element(part.places.begin(), part.places.end());
    const ptrdiff_t span = part.places.empty() ? 0 : *high - *low + 1;
    const ptrdiff_t strides[] = {span, span + 3, -span, -span - 5};
    const ptrdiff_t stride = strides[below(4)];
    Both all{part.layout.repeated(n, stride), {}};
    for (size_t i = 0; i < n; ++i) add(all.places, part.places, static_cast<ptrdiff_t>(i) * stride);
    return all;
  }

  Both list(int depth) {
    Places all;
    Layout::List layouts(below(9));
    ptrdiff_t at = static_cast<ptrdiff_t>(below(40)) - 20;
    for (size_t n = below(5); n > 0; --n) {
      const Both part = build(depth - 1);
      // Appends the same part once or twice, sometimes right after the previous one.
      for (size_t times = 1 + below(2); times > 0; --times) {
        layouts.append(at, part.layout);
        add(all, part.places, at);
        at = below(2) == 0 && !all.empty() ? all.back() + 1
                                           : at + static_cast<ptrdiff_t>(below(3000)) - 900;
      }
    }
    return {std::move(layouts).finish(), all};
  }

  static void add(Places& all, const Places& more, ptrdiff_t at) {
    for (const ptrdiff_t place : more) all.push_back(at + place);
  }

  std::mt19937_64 random_;
};

// Memory for some elements, and the places of all their bytes.
struct Field {
  Field(const Both& both, size_t elements, ptrdiff_t extent) {
    for (size_t i = 0; i < elements; ++i) {
      for (const ptrdiff_t place : both.places) {
        places.push_back(place + static_cast<ptrdiff_t>(i) * extent);
      }
    }
    const auto [low, high] = std::minmax_element(places.begin(), places.end());
    origin = places.empty() ? 0 : -*low;
    memory.resize(places.empty() ? 0 : static_cast<size_t>(*high - *low + 1));
  }
  std::byte& at(size_t i) { return memory[static_cast<size_t>(origin + places[i])]; }

  Places places;
  ptrdiff_t origin;
  std::vector<std::byte> memory;
};

// Packs, and counts what it is asked for.
class PackingCopier final : public Layout::Copier {
 public:
  void copy(std::byte* user, std::byte* dense, size_t bytes) override {
    std::memcpy(dense, user, bytes);
    copied += bytes;
    ++calls;
  }
  void runs(std::byte* user, ptrdiff_t stride, size_t n, size_t bytes, std::byte* dense,
            size_t dense_stride) override {
    EXPECT_GT(n, 1U);
    EXPECT_GE(dense_stride, bytes);
    if (stride > 0) ++calls;
    for (size_t i = 0; i < n; ++i) {
      std::memcpy(dense + i * dense_stride, user + static_cast<ptrdiff_t>(i) * stride, bytes);
      copied += bytes;
      if (stride <= 0) ++calls;  // (such runs are copied one by one)
    }
  }
  size_t copied = 0, calls = 0;
};

void check(const Both& both, Builder& random) {
  ASSERT_EQ(both.layout.bytes(), both.places.size());
  ASSERT_EQ(both.layout.start(), both.places.empty() ? 0 : both.places.front());
  const size_t elements = random.below(4);
  const auto extent = static_cast<ptrdiff_t>(random.below(100)) - 30;
  Field field(both, elements, extent);
  for (std::byte& byte : field.memory) byte = static_cast<std::byte>(random.below(256));
  const size_t total = field.places.size();
  for (int i = 0; i < 8; ++i) {
    const size_t begin = random.below(total + 1), size = random.below(total - begin + 1);
    std::vector<std::byte> dense(size);
    both.layout.pack(field.memory.data() + field.origin, extent, begin, size, dense.data());
    for (size_t k = 0; k < size; ++k) ASSERT_EQ(dense[k], field.at(begin + k)) << begin << "+" << k;

    PackingCopier copier;
    std::vector<std::byte> copied(size);
    both.layout.move(copier, field.memory.data() + field.origin, extent, begin, size,
                     copied.data());
    ASSERT_EQ(copied, dense);
    ASSERT_EQ(copier.copied, size);

    // The reference unpacks in list order: of bytes that lie twice, the last one stays.
    for (std::byte& byte : dense) byte = static_cast<std::byte>(random.below(256));
    std::vector<std::byte> before = field.memory;
    both.layout.unpack(field.memory.data() + field.origin, extent, begin, size, dense.data());
    std::swap(before, field.memory);
    for (size_t k = 0; k < size; ++k) field.at(begin + k) = dense[k];
    ASSERT_EQ(field.memory, before) << "untouched bytes included";
  }
}

TEST(Layout, MovesAnyStretchOfAnything) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Builder random(seed);
  size_t filled = 0;
  for (int i = 0; i < 3000; ++i) {
    const Both both = random.build(1 + i % 4);
    check(both, random);
    if (testing::Test::HasFatalFailure()) return;
    filled += !both.places.empty();
  }
  EXPECT_GT(filled, 1000U);
}

// Copies that elements take, all at once.
size_t count_copies(const Layout& layout, size_t elements, ptrdiff_t extent) {
  std::vector<std::byte> memory(100000), dense(layout.bytes() * elements);
  PackingCopier copier;
  layout.move(copier, memory.data() + 50000, extent, 0, dense.size(), dense.data());
  EXPECT_EQ(copier.copied, dense.size());
  return copier.calls;
}

Layout pair_of(const Layout& first, const Layout& second, ptrdiff_t at) {
  Layout::List list;
  list.append(0, first);
  list.append(at, second);
  return std::move(list).finish();
}

TEST(Layout, TakesFewCopiesHoweverLoopsAreNested) {
  const Layout run = Layout::run(4);
  EXPECT_EQ(count_copies(run.repeated(100, 12), 1, 0), 1U);
  EXPECT_EQ(count_copies(run.repeated(2, 12), 100, 40), 2U);
  EXPECT_EQ(count_copies(run.repeated(100, 12), 2, 4000), 2U);
  EXPECT_EQ(count_copies(run.repeated(5, 12).repeated(9, 100).repeated(3, 1000), 1, 0), 3U * 5);
  EXPECT_EQ(count_copies(pair_of(run, Layout::run(8), 16), 1000, 24), 2U);
  EXPECT_EQ(count_copies(pair_of(run, run.repeated(3, 8), 16), 100, 40), 1U + 3);
  EXPECT_EQ(count_copies(pair_of(run, run, 16).repeated(3, 40), 100, 150), 2U * 3);
  EXPECT_EQ(count_copies(run.repeated(5, -12), 100, 60), 5U);
  EXPECT_EQ(count_copies(run.repeated(5, 12), 100, -60), 100U);
  EXPECT_EQ(count_copies(run, 10, -60), 10U);
}

TEST(Layout, FindsLoopsAmongRuns) {
  Layout::List list;
  for (ptrdiff_t i = 0; i < 9; ++i) list.append(20 * i, Layout::run(8));
  EXPECT_EQ(count_copies(std::move(list).finish(), 1, 0), 1U);
  Layout::List more;
  more.append(-50, Layout::run(8));
  more.append(-41, Layout::run(8));
  for (ptrdiff_t i = 0; i < 9; ++i) more.append(20 * i, Layout::run(8));
  for (ptrdiff_t i = 0; i < 9; ++i) more.append(400 + 20 * i, Layout::run(4));
  more.append(1000, Layout::run(4));
  EXPECT_EQ(count_copies(std::move(more).finish(), 1, 0), 2U + 1 + 1 + 1);
}

TEST(Layout, KnowsARunHoweverItWasMade) {
  EXPECT_TRUE(Layout::run(8).is_run());
  EXPECT_TRUE(Layout::run(8).repeated(5, 8).repeated(3, 40).is_run());
  Layout::List pieces;
  pieces.append(-4, Layout::run(4));
  pieces.append(0, Layout::run(0));
  pieces.append(0, Layout::run(4).repeated(2, 4));
  Layout::List more = pieces;
  more.append(-8, Layout::run(4));  // adjacent, but out of order
  const Layout twelve = std::move(pieces).finish();
  EXPECT_TRUE(twelve.is_run());
  EXPECT_EQ(twelve.bytes(), 12U);
  EXPECT_EQ(twelve.start(), -4);
  EXPECT_FALSE(std::move(more).finish().is_run());
  EXPECT_FALSE(Layout::run(8).repeated(2, 16).is_run());
  EXPECT_FALSE(Layout::run(8).repeated(2, -8).is_run());
  EXPECT_FALSE(Layout().is_run());
}

// A constructor may use one part many times; the layout must stay small.
TEST(Layout, SharesWhatIsNestedDeeply) {
  Layout layout = Layout::run(1).repeated(2, 3);
  for (int i = 0; i < 40; ++i) {
    Layout::List twice;
    twice.append(0, layout);
    twice.append(1, layout);
    layout = std::move(twice).finish();
  }
  EXPECT_EQ(layout.bytes(), size_t{2} << 40);
  std::byte memory[64], dense[3];
  for (size_t i = 0; i < sizeof memory; ++i) memory[i] = static_cast<std::byte>(i);
  layout.pack(memory, 0, layout.bytes() - 3, 3, dense);
  EXPECT_EQ(static_cast<int>(dense[0]), 42);  // 39 times 1, + second place of the previous element
  EXPECT_EQ(static_cast<int>(dense[1]), 40);
  EXPECT_EQ(static_cast<int>(dense[2]), 43);
}

// Loops in lists in loops, to the depth limit: each level has at least twice the bytes of the last.
TEST(Layout, NestsWhatDoublesWithEachLevel) {
  Layout layout = Layout::run(1);
  for (int i = 0; i < 30; ++i) {
    Layout::List list;
    list.append(0, layout.repeated(2, 3));
    list.append(5, Layout::run(1));
    layout = std::move(list).finish().repeated(2, 7);
  }
  std::vector<std::byte> memory(1 << 10), dense(2);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
  layout.pack(memory.data(), 0, layout.bytes() - 2, 2, dense.data());
  // The last byte is the outermost list's own byte in its second repetition. Before it comes the
  // last byte of the nested layout: again its own byte, in its second repetition.
  EXPECT_EQ(static_cast<int>(dense[1]), 12);
  EXPECT_EQ(static_cast<int>(dense[0]), 7 + 3 + 7 + 5);
}

}  // namespace
}  // namespace sluice
