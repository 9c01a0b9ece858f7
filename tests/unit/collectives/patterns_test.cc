// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/fold.h"
#include "collectives/patterns/log2.h"
#include "collectives/patterns/radix.h"
#include "collectives/patterns/ring.h"
#include "collectives/patterns/tree.h"

namespace sluice {
namespace {

constexpr Rank sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,   10,  11,  12,  13,  15,
                          16, 17, 24, 31, 32, 33, 64, 81, 100, 127, 128, 129, 210, 1000};

TEST(Log2, EnclosesEveryNumber) {
  for (uint32_t n = 1; n < 5000; ++n) {
    EXPECT_LE(1u << floor_log2(n), n);
    EXPECT_GT(2u << floor_log2(n), n);
    EXPECT_GE(1u << ceil_log2(n), n);
    EXPECT_LT(1u << ceil_log2(n), 2 * n);
  }
}

TEST(Ring, StepsForwardAndBackAreInverse) {
  EXPECT_EQ(next_in_ring(3, 4), 0u);
  EXPECT_EQ(previous_in_ring(0, 4), 3u);
  for (const Rank size : sizes) {
    for (Rank by = 0; by < size; ++by) {
      const Rank rank = by / 2;
      EXPECT_EQ(ahead(rank, by, size), (rank + by) % size);
      EXPECT_EQ(behind(ahead(rank, by, size), by, size), rank);
    }
  }
}

TEST(Chunk, ChunksJoinToTheWhole) {
  constexpr size_t elements = 23;
  for (const uint32_t of : sizes) {
    size_t next = 0;
    for (uint32_t i = 0; i < of; ++i) {
      const Range range = cut(elements, chunk(Area::output, i, of).part);
      EXPECT_EQ(range.first, next);
      next += range.count;
    }
    EXPECT_EQ(next, elements);
    EXPECT_EQ(cut(elements, chunks(Area::input, 0, of, of).part).count, elements);
  }
}

TEST(Fold, SixRanks) {
  const Fold fold(6);
  EXPECT_EQ(fold.core, 4u);
  const Rank in_core[] = {1, 3, 4, 5};
  for (Rank v = 0; v < 4; ++v) EXPECT_EQ(fold.from_core(v), in_core[v]);
  EXPECT_TRUE(fold.folds(0));
  EXPECT_TRUE(fold.folds(2));
  EXPECT_TRUE(fold.absorbs(1));
  EXPECT_FALSE(fold.folds(4));
  EXPECT_FALSE(fold.absorbs(5));
}

TEST(Fold, CoreRanksStandForRunsInOrder) {
  for (const Rank size : sizes) {
    const Fold fold(size);
    EXPECT_LE(fold.core, size);
    EXPECT_GT(2 * fold.core, size);
    EXPECT_EQ(fold.first_of(0), 0u);
    EXPECT_EQ(fold.first_of(fold.core), size);
    for (Rank v = 0; v < fold.core; ++v) {
      const Rank rank = fold.from_core(v);
      EXPECT_EQ(fold.to_core(rank), v);
      EXPECT_FALSE(fold.folds(rank));
      EXPECT_EQ(fold.first_of(v + 1) - 1, rank);
      EXPECT_EQ(fold.absorbs(rank), fold.first_of(v) + 1 == rank);
      if (fold.absorbs(rank)) {
        EXPECT_TRUE(fold.folds(rank - 1));
      }
    }
  }
}

TEST(Fold, NoneLeavesEveryRankWhereItIs) {
  const Fold fold = Fold::none(7);
  EXPECT_EQ(fold.extra(), 0u);
  for (Rank rank = 0; rank < 7; ++rank) {
    EXPECT_FALSE(fold.folds(rank) || fold.absorbs(rank));
    EXPECT_EQ(fold.to_core(rank), rank);
    EXPECT_EQ(fold.from_core(rank), rank);
  }
}

TEST(Radix, Factorizes) {
  using Factors = std::vector<uint32_t>;
  EXPECT_EQ(factorize(1, 2), Factors({}));
  EXPECT_EQ(factorize(12, 2), Factors({2, 2, 3}));
  EXPECT_EQ(factorize(12, 4), Factors({4, 3}));
  EXPECT_EQ(factorize(12, 5), Factors({2, 2, 3}));
  EXPECT_EQ(factorize(12, 12), Factors({12}));
  EXPECT_EQ(factorize(7, 2), Factors({7}));
  EXPECT_EQ(factorize(64, 8), Factors({8, 8}));
  EXPECT_EQ(factorize(6, 0), Factors({2, 3}));
  EXPECT_EQ(factorize(6, 1), Factors({2, 3}));
  EXPECT_EQ(factorize(2147483647u, 2), Factors({2147483647u}));
}

TEST(Radix, DigitsMakeTheRank) {
  for (const Rank size : sizes) {
    for (const uint32_t radix : {2u, 3u, 4u, 8u}) {
      const std::vector<Digit> digits = digits_of(size, radix);
      for (Rank rank = 0; rank < size; ++rank) {
        Rank sum = 0;
        for (const Digit& digit : digits) {
          sum += digit.of(rank) * digit.stride;
          EXPECT_EQ(digit.with(rank, digit.of(rank)), rank);
          const Rank lowest = digit.with(rank, 0);
          EXPECT_EQ(digit.of(lowest), 0u);
          EXPECT_EQ(digit.with(lowest, digit.of(rank)), rank);
          EXPECT_EQ(lowest + digit.of(rank) * digit.stride, rank);
        }
        EXPECT_EQ(sum, rank);
      }
    }
  }
}

using Tree = std::vector<TreeNode>;

// Checks what every tree must fulfil: parents and children agree, each subtree covers the ranks
// that it claims, and each child adjoins what was taken before, on one side or the other. Returns
// the depth.
uint32_t check(const Tree& tree) {
  const auto size = static_cast<Rank>(tree.size());
  Rank roots = 0, edges = 0;
  uint32_t depth = 0;
  for (Rank rank = 0; rank < size; ++rank) {
    const TreeNode& node = tree[rank];
    EXPECT_EQ(node.own.root, rank);
    roots += node.parent == no_rank;
    Rank first = rank, last = rank + 1;
    for (const Subtree& child : node.children) {
      EXPECT_TRUE(child.last == first || child.first == last);
      first = std::min(first, child.first);
      last = std::max(last, child.last);
      EXPECT_EQ(tree[child.root].parent, rank);
      EXPECT_EQ(tree[child.root].own, child);
      ++edges;
    }
    EXPECT_EQ(node.own, (Subtree{rank, first, last}));
    uint32_t distance = 0;
    for (Rank at = rank; tree[at].parent != no_rank && distance <= size; ++distance) {
      at = tree[at].parent;
    }
    depth = std::max(depth, distance);
  }
  EXPECT_EQ(roots, 1u);
  EXPECT_EQ(edges, size - 1);
  return depth;
}

template <typename NodeOf>  // TreeNode(Rank)
Tree grow(Rank size, NodeOf node_of) {
  Tree tree;
  for (Rank rank = 0; rank < size; ++rank) tree.push_back(node_of(rank));
  return tree;
}

// Messages one after another until a rank has its whole subtree, if it takes one child at a time.
uint32_t rounds(const Tree& tree, Rank rank) {
  uint32_t round = 0;
  for (const Subtree& child : tree[rank].children) {
    round = std::max(round, rounds(tree, child.root)) + 1;
  }
  return round;
}

Rank root_of(const Tree& tree) {
  Rank rank = 0;
  while (tree[rank].parent != no_rank) rank = tree[rank].parent;
  return rank;
}

TEST(BinomialTree, AnyRoot) {
  for (const Rank size : sizes) {
    const Rank stride = size <= 33 ? 1 : size / 5;
    for (Rank root = 0; root < size; root += stride) {
      SCOPED_TRACE(testing::Message() << "size " << size << " root " << root);
      const Tree tree = grow(size, [&](Rank rank) { return binomial_tree(rank, size, root); });
      EXPECT_LE(check(tree), ceil_log2(size));
      EXPECT_EQ(rounds(tree, root), ceil_log2(size));
      EXPECT_EQ(root_of(tree), root);
    }
  }
}

TEST(BinomialTree, IsTheWellKnownOneAtRootZero) {
  const TreeNode root = binomial_tree(0, 11, 0);
  const std::vector<Subtree> expected = {{1, 1, 2}, {2, 2, 4}, {4, 4, 8}, {8, 8, 11}};
  EXPECT_EQ(root.children, expected);
  EXPECT_EQ(binomial_tree(7, 11, 0).parent, 6u);
  EXPECT_EQ(binomial_tree(6, 11, 0).parent, 4u);
  EXPECT_EQ(binomial_tree(10, 11, 0).parent, 8u);
}

// The least depth of a tree of `size` ranks with at most `radix` children per node.
uint32_t least_depth(Rank size, uint32_t radix) {
  uint32_t depth = 0;
  for (uint64_t level = 1, ranks = 1; ranks < size; ++depth) ranks += level *= radix;
  return depth;
}

TEST(InOrderTree, IsAsFlatAsItCanBe) {
  for (const Rank size : sizes) {
    for (const uint32_t radix : {1u, 2u, 3u, 4u, 7u, 1000000u}) {
      SCOPED_TRACE(testing::Message() << "size " << size << " radix " << radix);
      const Tree tree = grow(size, [&](Rank rank) { return in_order_tree(rank, size, radix); });
      EXPECT_EQ(check(tree), least_depth(size, radix));
      EXPECT_EQ(in_order_depth(size, radix), least_depth(size, radix));
      EXPECT_EQ(in_order_rounds(size, radix), rounds(tree, root_of(tree)));
      for (const TreeNode& node : tree) EXPECT_LE(node.children.size(), radix);
    }
  }
}

TEST(InOrderTree, TakesRadixTimesTheDepthWhereItIsComplete) {
  EXPECT_EQ(in_order_rounds(15, 2), 2 * 3u);
  EXPECT_EQ(in_order_rounds(40, 3), 3 * 3u);
  EXPECT_EQ(in_order_rounds(9, 1), 8u);
}

TEST(InOrderTree, RadixOneIsAChainFromRankZero) {
  const TreeNode node = in_order_tree(3, 6, 1);
  EXPECT_EQ(node.parent, 2u);
  EXPECT_EQ(node.children, std::vector<Subtree>({{4, 4, 6}}));
  EXPECT_EQ(in_order_tree(0, 6, 0).parent, no_rank);
}

TEST(DoubleTree, NoRankHasChildrenInBoth) {
  for (const Rank size : sizes) {
    SCOPED_TRACE(testing::Message() << "size " << size);
    const Tree first = grow(size, [&](Rank rank) { return first_of_two_trees(rank, size); });
    const Tree second = grow(size, [&](Rank rank) { return second_of_two_trees(rank, size); });
    EXPECT_EQ(std::max(check(first), check(second)), ceil_log2(size));
    for (Rank rank = 0; rank < size; ++rank) {
      EXPECT_LE(first[rank].children.size(), 2u);
      EXPECT_LE(second[rank].children.size(), 2u);
      EXPECT_TRUE((rank % 2 == 0 ? second : first)[rank].children.empty());
    }
  }
}

}  // namespace
}  // namespace sluice
